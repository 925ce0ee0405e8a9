# Regenerates what is generated under docs/.
. "$(dirname "$0")/prelude.sh"

prepare
check_go .
step "go generate ./docs/..." "under 1 min"
go generate -x ./docs/...
