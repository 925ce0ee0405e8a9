package controllers

import (
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
)

// These figures save an API server writes. They are this library's.
const (
	// progressInterval is the time between two statuses that report progress alone.
	progressInterval = 5 * time.Second
	// gather is how long orders of a rollout wait for others.
	gather = time.Second
	// settleWithin is how long names that have become machines wait for a write with other changes
	// that settles them.
	settleWithin = 10 * time.Second
)

// DefaultDeploymentPolicy returns that of package deployment with these changes: it reports
// progress every 5 s at most, orders of a rolling update gather for up to 1 s, and a set that grows
// then gets the names of as many machines as it creates at once.
func DefaultDeploymentPolicy() *deployment.Policy {
	p := deployment.DefaultPolicy()
	p.ProgressInterval, p.Gather, p.Names = progressInterval, gather, machineset.DefaultPolicy().Burst
	return p
}

// DefaultSetPolicy returns that of package machineset with these changes: sets of deployments
// report progress every 5 s at most, and names that have become machines may stay open for 10 s.
func DefaultSetPolicy() *machineset.Policy {
	p := machineset.DefaultPolicy()
	p.ProgressInterval, p.SettleWithin = progressInterval, settleWithin
	return p
}
