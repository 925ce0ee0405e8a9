package deployment_test

import (
	"time"

	"github.com/millwright-go/millwright/deployment/rollout"
)

func percent(n int32) rollout.IntOrPercent { return rollout.IntOrPercent{Value: n, Percent: true} }

// later leaves time for machines to have been ready for long.
var later = begin.Add(24 * time.Hour)
