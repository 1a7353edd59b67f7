
# The command lists the values; fish inserts only the part after the `=` of a flag.
function __corsair_values
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -q word[1]; or set word ''
    $words[1] __complete $words[2..] $word 2>/dev/null | string replace -r -- '^--?[a-z-]+=' ''
end
