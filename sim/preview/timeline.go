package preview

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// Timeline is what will happen, according to a preview. Offsets count from Model.Start, in whole seconds.
// Numbers count machines.
type Timeline struct {
	Key object.Key // the deployment's
	Bounds

	// Steps are the orders that were given, ordered by time.
	Steps []Step
	// Samples are the fleet's counts: at the start, and after each change. Several may have the same
	// offset.
	Samples []Sample

	// Duration is the time until the rollout was complete and the last old machine was gone, or until
	// the preview ended for another reason.
	Duration time.Duration
	// LowestAvailable and HighestTotal are the extremes of the samples.
	LowestAvailable int32
	HighestTotal    int32

	Created int64 // machines whose creation was ordered
	Deleted int64 // machines whose deletion was ordered
	Failed  int64 // created machines that became Failed
	// Selected counts machines that were selected to be updated in place. Moved counts machines that
	// moved to the new set after that.
	Selected int64
	Moved    int64
	// Updated counts VMs that were changed to what their class says, without a drain.
	Updated int64

	// Overdue is when the rollout first exceeded its progress deadline. Zero: never.
	Overdue time.Duration
	// Complete says that the rollout was complete within the limit.
	Complete bool
	// Ending says how the preview ended.
	Ending Ending
}

// Bounds are the bounds for the fleet, in machines.
type Bounds struct {
	Replicas    int32 // R, the number of machines wanted; a negative one counts as 0
	Surge       int32 // S, how many more than R there may be
	Unavailable int32 // U, how many of R may be unavailable
	Floor       int32 // max(0, R − U); 0 while the deployment is being deleted
	Ceiling     int32 // R + S, at most math.MaxInt32
}

// Counts are the numbers of machines at one moment, as decisions count them. Machines that are
// being deleted count as Terminating only.
type Counts struct {
	Old          int32 // in sets other than the new one
	New          int32 // in the new set
	OldAvailable int32 // those of Old that have been ready for the deployment's MinReady
	NewAvailable int32 // those of New that have been ready for the deployment's MinReady
	Ready        int32 // those of Old and New that are ready
	Terminating  int32 // machines that are being deleted
	Outdated     int32 // those of New whose VM is to be changed, see Model.Updatable
}

// Total returns how many machines there are, without the terminating ones. The ceiling limits it.
func (c Counts) Total() int32 { return c.Old + c.New }

// Available returns how many machines are available. The floor limits it.
func (c Counts) Available() int32 { return c.OldAvailable + c.NewAvailable }

// Unavailable returns how many machines are not available, because they are being created, not ready for
// long enough, or unhealthy.
func (c Counts) Unavailable() int32 { return c.Total() - c.Available() }

// Sample is the counts of the fleet at one moment.
type Sample struct {
	After time.Duration // since Model.Start
	Counts
}

// Step is one order of the deployment to a set, one order of a set to its machines, or the answer to a
// request for a rollback. Machines of one set that are selected at the same time to be updated in place
// are one step. Creations and deletions that follow from a set's size are no steps. Neither are numbers
// of revisions, notes about updates in place that select and move nothing, and changes of VMs.
type Step struct {
	After time.Duration // since Model.Start
	Set   string        // name of the set
	New   bool          // whether the set has the wanted template
	// From and To are the set's size before and after the step.
	From, To int32
	// Why is the reason of an order of the deployment. It is zero for an order of the set.
	Why decision.Why
	// Machines is the reason of an order of the set to its machines. It is zero for an order of the
	// deployment.
	Machines decision.Why
	// Seen is the counts on which the order was decided.
	Seen Counts
}

// Reason returns the reason of Why or, for an order of the set, of Machines.
func (s *Step) Reason() string {
	if s.Machines.Reason != (decision.Reason{}) {
		return s.Machines.Reason.String()
	}
	return s.Why.Reason.String()
}

// String returns the sentence of Why or, for an order of the set, that of Machines with the set's name.
func (s *Step) String() string {
	if s.Machines.Reason != (decision.Reason{}) {
		return "set " + s.Set + ": " + s.Machines.String()
	}
	return s.Why.String()
}

// EndReason says in one word, for programs, how a preview ended.
type EndReason string

// These are the ways in which a preview ends.
const (
	// EndComplete: the rollout is complete. It is the only good end.
	EndComplete EndReason = "Complete"
	// EndLimit: there was more to do when Model.Limit was reached.
	EndLimit EndReason = "LimitReached"
	// EndStuck: the rollout made no progress for Model.Patience.
	EndStuck EndReason = "Stuck"
	// EndPaused: the deployment is paused, and its sets have the machines that they want, or the rollout
	// made no progress for Model.Patience.
	EndPaused EndReason = "Paused"
	// EndRefused: the deployment's spec is invalid, or the deployment is being deleted without
	// deployment.Finalizer.
	EndRefused EndReason = "Refused"
	// EndFailing: every creation fails, including those that replace failed machines.
	EndFailing EndReason = "EveryCreationFails"
	// EndRolloutStopped: so many machines failed that the rollout has stopped, see
	// deployment.Strategy.StopAfter. After that, only failed machines would be replaced.
	EndRolloutStopped EndReason = "RolloutStopped"
	// EndStopped: the context ended. The preview returns its error.
	EndStopped EndReason = "Stopped"
)

// Ending is how and why a preview ended. Values are comparable.
type Ending struct {
	Reason EndReason
	// Waits is the reason of the deployment's last decision.
	Waits decision.Why
	// Set is the last reason of the set that the deployment waits for, if there is one.
	Set decision.Why
	// After is when it ended, since Model.Start.
	After time.Duration
	// Count is, for EndFailing, how many machines have failed since the rollout last made progress.
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

// String returns a sentence for people.
func (e Ending) String() string {
	reason, ok := endings[e.Reason]
	if !ok {
		return string(e.Reason)
	}
	return decision.Why{Reason: reason, For: e.After, Count: e.Count, Cause: waits{e.Waits, e.Set}}.String()
}

// waits is what a rollout still waited for when its preview ended: the reason of the deployment, and that
// of the set it waits for.
type waits struct{ deployment, set decision.Why }

func (w waits) String() string {
	if w.set == (decision.Why{}) {
		return w.deployment.String()
	}
	return w.deployment.String() + " (" + w.set.String() + ")"
}
