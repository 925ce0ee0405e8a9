# soak.sh: random storms in the simulator for SOAK (10m), then the quickstart,
# killed and continued RUNS times (40; see soak-quickstart.sh). SEED draws both.
. "$(dirname "$0")/prelude.sh"

prepare
check_go .
SEED=${SEED:-$(date +%s)}
export SEED
step "random storms from seed $SEED" "${SOAK:-10m}"
check storms go run ./sim/cmd/soak -for "${SOAK:-10m}" -seed "$SEED"
step "the quickstart is killed and goes on" "10 min"
check quickstart sh scripts/soak-quickstart.sh
if [ -n "$failed" ]; then die "soak: failed: ${failed#, }"; fi
printf '\nsoak: passed\n'
