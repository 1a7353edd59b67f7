# For scripts that consist of steps, each a function step_NAME. To be sourced.

# choose_steps SCRIPT [NAME...]: sets `steps` to these, or to `all_steps`; ends the script if one does not exist.
choose_steps() {
    script=$1
    shift
    steps=("${@:-${all_steps[@]}}")
    local step
    for step in "${steps[@]}"; do
        if ! declare -F "step_$step" >/dev/null; then
            echo "$script: no step $step; there are ${all_steps[*]}" >&2
            exit 2
        fi
    done
}

# Runs `steps` one after the other, says which failed, and how long each took.
run_steps() {
    local step began times=()
    trap 'status=$?; [ "$status" -eq 0 ] || echo "$script: FAILED in step $current" >&2' EXIT
    for step in "${steps[@]}"; do
        current=$step
        began=$SECONDS
        echo "$script: $step"
        "step_$step"
        times+=("$(printf '%-10s %5d s' "$step" "$((SECONDS - began))")")
    done
    printf "$script: %s\n" "${times[@]}" "all passed, ${SECONDS} s"
}
