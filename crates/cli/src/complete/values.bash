
# The command lists the values; if it lists none, the function above completes the word.
_corsair_values() {
    local line=${COMP_LINE:0:COMP_POINT} words=() found=() candidate
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    while IFS=$'\t' read -r candidate _; do
        found+=("$candidate")
    done < <("$1" __complete "${words[@]:1}" 2>/dev/null)
    if [[ ${#found[@]} -eq 0 ]]; then
        _corsair "$@"
        return
    fi
    # Bash replaces only the part of the word after the last `=` or `:`.
    local word=${words[${#words[@]} - 1]}
    local before=${word%"$2"}
    COMPREPLY=("${found[@]#"$before"}")
    [[ ${COMPREPLY[0]} == *[.=:] ]] && compopt -o nospace
    return 0
}
complete -F _corsair_values -o bashdefault -o default corsair
