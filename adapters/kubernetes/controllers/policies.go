package controllers

import (
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
)

// Figures that spare an API server writes. They are this library's.
const (
	// progressInterval is between two statuses that tell of progress alone.
	progressInterval = 5 * time.Second
	// gather is for how long orders of a rollout wait for others.
	gather = time.Second
	// settleWithin is for how long names that came to be machines wait for the
	// write that settles them with something else.
	settleWithin = 10 * time.Second
)

// DefaultDeploymentPolicy is that of package deployment, but progress is told
// every 5 s at most, orders of a rolling update gather for up to 1 s, and a set
// that grows then is given the names of as many machines as it creates at once.
func DefaultDeploymentPolicy() *deployment.Policy {
	p := deployment.DefaultPolicy()
	p.ProgressInterval, p.Gather, p.Names = progressInterval, gather, machineset.DefaultPolicy().Burst
	return p
}

// DefaultSetPolicy is that of package machineset, but sets of deployments tell
// of progress every 5 s at most, and names that came to be machines may stay open
// for 10 s.
func DefaultSetPolicy() *machineset.Policy {
	p := machineset.DefaultPolicy()
	p.ProgressInterval, p.SettleWithin = progressInterval, settleWithin
	return p
}
