package preview

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// Timeline is what a preview says will happen. Offsets count from Model.Start, in whole seconds;
// numbers are machines.
type Timeline struct {
	Key object.Key // the deployment's
	Bounds

	// Steps are the orders that were given, in their order.
	Steps []Step
	// Samples are the fleet's counts over time: first as it was found, then
	// after each change. Several may have the same offset.
	Samples []Sample

	// Duration is how long it took until all was done and the last machine was gone. If the preview
	// ended otherwise, it is how far it got.
	Duration time.Duration
	// LowestAvailable and HighestTotal are the extremes of the samples.
	LowestAvailable int32
	HighestTotal    int32

	Created int64 // machines whose creation was ordered
	Deleted int64 // machines whose deletion was ordered
	Failed  int64 // machines that became Failed, of those created
	// Selected are machines that were selected to be updated in place. Moved are those of them that
	// came to their new set.
	Selected int64
	Moved    int64
	// Updated are VMs that were changed to what their class says, without a drain.
	Updated int64

	// Overdue is when the rollout had made no progress for its progress deadline the first time.
	// Zero: never.
	Overdue time.Duration
	// Complete: the rollout was done within the limit.
	Complete bool
	// Ending says how the preview ended.
	Ending Ending
}

// Bounds are the bounds for the fleet, in machines.
type Bounds struct {
	Replicas    int32 // R, wanted; negative ones count as 0
	Surge       int32 // S, more than R for a time
	Unavailable int32 // U, of R missing for a time
	Floor       int32 // max(0, R − U); 0 while the deployment is being deleted
	Ceiling     int32 // R + S, at most math.MaxInt32
}

// Counts are the numbers of machines at one moment, as decisions count them. Machines that are
// being deleted count as Terminating only.
type Counts struct {
	Old          int32 // of sets other than the new one
	New          int32 // of the new set
	OldAvailable int32 // of Old, ready for the deployment's MinReady
	NewAvailable int32 // of New, likewise
	Ready        int32 // of Old and New, ready for any time
	Terminating  int32 // ordered to go, and not gone yet
	Outdated     int32 // of New, whose VM is to be changed, as Model.Updatable allows
}

// Total returns how many machines there are, without the terminating ones. The ceiling limits it.
func (c Counts) Total() int32 { return c.Old + c.New }

// Available returns how many machines are available. The floor limits it.
func (c Counts) Available() int32 { return c.OldAvailable + c.NewAvailable }

// Unavailable returns how many machines there are that are not available: still coming up, or
// broken.
func (c Counts) Unavailable() int32 { return c.Total() - c.Available() }

// Sample is the fleet at one moment.
type Sample struct {
	After time.Duration // since Model.Start
	Counts
}

// Step is one order, to a set or of a set to its machines, or the answer to a request for a
// rollback. Machines of one set that are selected at once to be updated in place are one step.
// These are no steps: creations and deletions that follow from a set's size, numbers of revisions,
// notes about updates in place that select and move nothing, and changes of VMs.
type Step struct {
	After time.Duration // since Model.Start
	Set   string        // name of the set that it is about
	New   bool          // the set has the wanted template
	// From and To are the set's size before and after; equal unless it is
	// resized.
	From, To int32
	// Why is the reason of an order of the deployment to a set. Zero: the
	// set's own order.
	Why decision.Why
	// Machines is the reason of a set's own order to its machines. Zero: the
	// deployment's order.
	Machines decision.Why
	// Seen is what the decision was made from.
	Seen Counts
}

// Reason returns that of Why or, for a set's own order, of Machines.
func (s *Step) Reason() string {
	if s.Machines.Reason != (decision.Reason{}) {
		return s.Machines.Reason.String()
	}
	return s.Why.Reason.String()
}

// String returns the sentence of Why or, for a set's own order, of Machines with the set's name.
func (s *Step) String() string {
	if s.Machines.Reason != (decision.Reason{}) {
		return "set " + s.Set + ": " + s.Machines.String()
	}
	return s.Why.String()
}

// EndReason is how a preview ended, one word for programs.
type EndReason string

// The ways in which a preview ends.
const (
	// EndComplete: all was done. It is the only good end.
	EndComplete EndReason = "Complete"
	// EndLimit: there was more to do when Model.Limit was reached.
	EndLimit EndReason = "LimitReached"
	// EndStuck: the rollout made no progress for Model.Patience.
	EndStuck EndReason = "Stuck"
	// EndPaused: the deployment is paused, and its sets have what they want, or the rollout made no
	// progress for Model.Patience.
	EndPaused EndReason = "Paused"
	// EndRefused: the deployment can't be acted upon. Its spec is invalid, or it is being deleted
	// without our finalizer.
	EndRefused EndReason = "Refused"
	// EndFailing: every creation fails, including those that replace failed machines.
	EndFailing EndReason = "EveryCreationFails"
	// EndRolloutStopped: so many machines failed that the rollout has stopped, see
	// deployment.Strategy.StopAfter. Nothing more would happen but replacements of those that failed.
	EndRolloutStopped EndReason = "RolloutStopped"
	// EndStopped: the context ended. The preview returns its error.
	EndStopped EndReason = "Stopped"
)

// Ending is how and why a preview ended. Values are comparable.
type Ending struct {
	Reason EndReason
	// Waits is what the deployment's last decision said.
	Waits decision.Why
	// Set is what the set that the deployment waits for said last, if there is such a set.
	Set decision.Why
	// After is when it ended, since Model.Start.
	After time.Duration
	// Count is how many machines failed since the rollout last made progress, of EveryCreationFails.
	Count int64
}

var endings = map[EndReason]decision.Reason{
	EndComplete:       decision.NewReason("Complete", "complete after {wait}"),
	EndLimit:          decision.NewReason("Limit", "not complete after {wait}, which is as far as the preview looks: {cause}"),
	EndStuck:          decision.NewReason("Stuck", "stuck after {wait}: {cause}"),
	EndPaused:         decision.NewReason("Paused", "on hold after {wait}: {cause}"),
	EndRefused:        decision.NewReason("Refused", "refused: {cause}"),
	EndFailing:        decision.NewReason("Failing", "given up after {wait}: every creation fails, {count} did in a row: {cause}"),
	EndRolloutStopped: decision.NewReason("RolloutStopped", "ended after {wait}: {cause}"),
	EndStopped:        decision.NewReason("Stopped", "stopped after {wait}, before its end: {cause}"),
}

// String returns a sentence that a person can act on.
func (e Ending) String() string {
	reason, ok := endings[e.Reason]
	if !ok {
		return string(e.Reason)
	}
	return decision.Why{Reason: reason, For: e.After, Count: e.Count, Cause: waits{e.Waits, e.Set}}.String()
}

// waits returns what a preview that ended still waited for: the deployment, and the set it waits
// for.
type waits struct{ deployment, set decision.Why }

func (w waits) String() string {
	if w.set == (decision.Why{}) {
		return w.deployment.String()
	}
	return w.deployment.String() + " (" + w.set.String() + ")"
}
