package main

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/safety/reachability"
)

// looks is how often the manager asks a disconnected cluster, once all is frozen, before the
// cluster comes back.
const looks = 2

// outage disconnects the cluster with its socket, and connects it again. Meanwhile there are no
// heartbeats, which says nothing about the machines.
func (p *play) outage(ctx context.Context) error {
	before, err := p.processes("v2")
	if err != nil {
		return err
	}
	p.beginCounts()
	frozen, back := p.narrator.times(reachability.ReasonUnreachable), p.narrator.times(reachability.ReasonReachable)
	p.stopCluster()
	err = p.Await(ctx, func() string {
		if p.narrator.times(reachability.ReasonUnreachable) == frozen {
			return "the manager's notice that the cluster is away"
		}
		return ""
	})
	if err != nil {
		return err
	}
	p.Say("the cluster does not answer: nothing is created or given up")
	if err := p.asked(ctx, looks); err != nil {
		return err
	}
	p.startCluster()
	err = p.Await(ctx, func() string {
		if p.narrator.times(reachability.ReasonReachable) == back {
			return "the manager's notice that the cluster is back"
		}
		return ""
	})
	if err != nil {
		return err
	}
	if err := p.settled(ctx, replicas, "v2"); err != nil {
		return err
	}
	for _, life := range before {
		if !life.ID.Alive() {
			return fmt.Errorf("process %d of machine %s has ended since the cluster did not answer", life.ID.PID, life.Machine)
		}
	}
	p.Say("the cluster is back, with the same %d processes", len(before))
	return p.checkRollout(ctx)
}

// asked waits until the manager has asked the cluster n times more.
func (p *play) asked(ctx context.Context, n int) error {
	before := p.Calls.Of("CheckTarget")
	return p.Await(ctx, func() string {
		if more := p.Calls.Of("CheckTarget") - before; more < n {
			return fmt.Sprintf("%d of %d questions whether the cluster answers", n-more, n)
		}
		return ""
	})
}
