
# The command lists the values; if it lists none, the function above completes the word.
functions[_corsair_flags]=$functions[_corsair]
_corsair() {
    local line about
    local -a lines words_before ended ended_about open open_about
    words_before=("${(@Q)words[2,CURRENT-1]}")
    lines=("${(@f)$(${~words[1]} __complete "${words_before[@]}" "${(Q)PREFIX}" 2>/dev/null)}")
    for line in $lines; do
        about=${line#*$'\t'}
        line=${line%%$'\t'*}
        if [[ $line == *[.=:] ]]; then
            open+=("$line")
            open_about+=("$line${about:+ -- $about}")
        else
            ended+=("$line")
            ended_about+=("$line${about:+ -- $about}")
        fi
    done
    if (( ! $#ended && ! $#open )); then
        _corsair_flags "$@"
        return
    fi
    (( $#ended )) && compadd -l -d ended_about -- $ended
    (( $#open )) && compadd -S '' -l -d open_about -- $open
}
