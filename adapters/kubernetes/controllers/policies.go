package controllers

import (
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
)

// These settings save writes to the API server. The values are this library's choice.
const (
	// progressInterval is the time between two statuses that report progress alone.
	progressInterval = 5 * time.Second
	// gather is how long the orders of a rolling update wait for further ones, to be written together.
	gather = time.Second
	// settleWithin is how long a machineset.Reservation stays on a set after all of its names became
	// machines, so that the set's next write can remove it as well.
	settleWithin = 10 * time.Second
)

// DefaultDeploymentPolicy returns the default of package deployment with these changes: progress is
// reported every 5 s at most, orders of a rolling update are gathered for up to 1 s, and a set that
// grows in such an update gets names for as many machines as it creates at once.
func DefaultDeploymentPolicy() *deployment.Policy {
	p := deployment.DefaultPolicy()
	p.ProgressInterval, p.Gather, p.Names = progressInterval, gather, machineset.DefaultPolicy().Burst
	return p
}

// DefaultSetPolicy returns the default of package machineset with these changes: sets of deployments
// report progress every 5 s at most, and a machineset.Reservation may stay for 10 s after all of its
// names became machines.
func DefaultSetPolicy() *machineset.Policy {
	p := machineset.DefaultPolicy()
	p.ProgressInterval, p.SettleWithin = progressInterval, settleWithin
	return p
}
