package sim

import (
	"fmt"
	"time"
)

// Step is something that users, or other programs, do. If its object is gone, nothing happens.
type Step struct {
	// After is the time since the step before.
	After time.Duration
	Do    Action
	// Name is the deployment's for Roll to Delete, ScaleDown and Retag, the app's for Resize, the
	// pool's for steps that change pools.
	Name string
	// Class is the one that Roll and RollBriefly ask for, that RemakeClass removes, or whose tags Tag
	// changes.
	Class string
	// N is the number of replicas for Scale and Resize, the revision for
	// Rollback, and which machine, VM, node or zone for the others: it is taken
	// modulo their number.
	N int
	// Value is what Preserve, PreserveNode and Prioritize write.
	Value string
	// For is how long an outage or a pause lasts, and how far the clock jumps.
	For time.Duration
}

// Action is what a step does. The zero value only waits.
type Action string

// These are the actions.
const (
	// Roll asks for another class of machines.
	Roll Action = "roll"
	// Scale asks for another number of machines.
	Scale Action = "scale"
	// Rollback asks for an earlier revision; 0: the one before.
	Rollback Action = "rollback"
	// Pause and Resume stop and start rollouts.
	Pause  Action = "pause"
	Resume Action = "resume"
	// Delete deletes a deployment.
	Delete Action = "delete"
	// Resize changes how many pods an app has.
	Resize Action = "resize"

	// DeleteMachine deletes a machine.
	DeleteMachine Action = "delete machine"
	// DeleteNode deletes a node.
	DeleteNode Action = "delete node"
	// DeleteNodes deletes N nodes at the same moment, as a mistaken program does.
	DeleteNodes Action = "delete nodes"
	// CordonNode cordons a node that is not cordoned.
	CordonNode Action = "cordon node"
	// RemoveVM removes a VM at the provider.
	RemoveVM Action = "remove VM"
	// OrphanVM makes an orphan VM, every other time under the name of a machine that has one.
	OrphanVM Action = "stray"

	// StopControl and StopTarget make an API stop answering, StopZone a zone.
	StopControl Action = "stop control"
	StopTarget  Action = "stop target"
	StopZone    Action = "stop zone"
	// JumpClock sets the manager's clock ahead, or back if For is negative.
	JumpClock Action = "jump clock"
)

// These are the requests that users make for single machines and sets, and for existing VMs.
const (
	// PauseMachine and PauseSet pause a machine or a set for For. Zero: until the faults stop.
	PauseMachine Action = "pause machine"
	PauseSet     Action = "pause set"
	// Preserve and PreserveNode write Value as the request to keep a machine for inspection, on it
	// or on its node. If Value is empty, they remove the request.
	Preserve     Action = "preserve machine"
	PreserveNode Action = "preserve by node"
	// Prioritize writes Value as a machine's deletion priority.
	Prioritize Action = "prioritize machine"
	// Replace asks for the replacement of a machine.
	Replace Action = "replace machine"
	// ScaleDown is what an autoscaler does: the deployment Name loses one or two machines, and
	// those from the Nth on are to be deleted.
	ScaleDown Action = "scale down"
	// Tag changes the tags of class Class, the Nth time. Retag makes the deployment Name ask for a
	// class that differs from its own in its tags only.
	Tag   Action = "tag class"
	Retag Action = "retag"
)

// These are the steps that change pools. Name is the pool's.
const (
	// ScalePool asks for N instances, RollPool for a class of machines.
	ScalePool Action = "scale pool"
	RollPool  Action = "roll pool"
	// SpreadPool asks for N failure domains.
	SpreadPool Action = "spread pool"
	// BoundPool has a pool updated with N instances more than wanted, or with N fewer if Value is
	// "missing". N 0: as the provider likes.
	BoundPool Action = "bound pool"
	// Autoscale gives the size of a pool to the provider, with Value "true", or takes it back.
	// ResizeGroup sets the group's size to N, as its autoscaler does, or a person by hand.
	Autoscale   Action = "autoscale pool"
	ResizeGroup Action = "resize group"
	// ReplaceNode makes the node of the Nth instance ask for a replacement.
	ReplaceNode Action = "replace node"
	// AskDrain makes the provider request the drain of the Nth instance and wait for it.
	AskDrain Action = "ask drain"
	// LoseInstance removes the Nth instance at the provider. LoseGroup removes the group.
	LoseInstance Action = "lose instance"
	LoseGroup    Action = "lose group"
	// FailGroup makes the provider report for For that a group can't work.
	FailGroup Action = "fail group"
	// StopGroups makes the provider answer no call about groups for For.
	StopGroups Action = "stop groups"
	// DeletePool deletes a pool. RemakePool also makes one of the same name once it is gone.
	DeletePool Action = "delete pool"
	RemakePool Action = "remake pool"
	// ForgetPool removes the record of a pool with its finalizer. Its group is then an orphan.
	ForgetPool Action = "forget pool"
)

// These are what other programs and people do to objects that the manager works on.
const (
	// FlickerNodes makes up to N nodes silent for up to For, again and again for half an hour.
	FlickerNodes Action = "flicker nodes"
	// RegisterNode removes the Nth node with its finalizer. Its kubelet registers it again within For,
	// with another UID and without anything that others have put on it.
	RegisterNode Action = "register node again"
	// StripNode takes labels of the manager's and all taints off the Nth node, puts the labels back
	// after For unless it is zero, and leaves a label of its own.
	StripNode Action = "strip node"
	// FightOverNodes has another program undo on sight, for For, what the manager writes on nodes: the
	// Nth of a label, a changed label, a taint, the finalizer and the startup taint's removal.
	FightOverNodes Action = "fight over nodes"
	// TouchObjects writes an annotation that means nothing to the manager on all machines, sets,
	// classes and secrets, every ten seconds for For.
	TouchObjects Action = "touch objects"
	// SelectNodes puts the label on up to N nodes of machines by which a user selects a machine for its update in place.
	SelectNodes Action = "select nodes"
	// RemakeClass removes class Class with its finalizer, and makes it again after For.
	RemakeClass Action = "remake class"
	// RollBriefly asks for class Class in deployment Name, and for the former one again after For.
	RollBriefly Action = "roll briefly"
	// SpoilTemplate gives the nodes of deployment Name a label that no API server accepts, for For.
	SpoilTemplate Action = "spoil template"
	// SpoilClass gives class Class a provider spec that no driver can read, for For.
	SpoilClass Action = "spoil class"
	// HoldDrain and HoldVM put a hook on all machines from the Nth on, which holds back the drain, or
	// the deletion of the VM. It is taken off For after the machine's deletion has begun. Zero: never.
	HoldDrain Action = "hold drain"
	HoldVM    Action = "hold VM"
	// ForceDeletion has a person force the Nth deletion that is under way.
	ForceDeletion Action = "force deletion"
)

// isPoolAction reports whether a step changes a pool.
func isPoolAction(d Action) bool {
	switch d {
	case ScalePool, RollPool, SpreadPool, BoundPool, Autoscale, ResizeGroup, ReplaceNode, AskDrain, LoseInstance, LoseGroup, FailGroup, StopGroups, DeletePool, RemakePool, ForgetPool:
		return true
	}
	return false
}

// String returns what a step does.
func (s *Step) String() string {
	switch s.Do {
	case Roll:
		return fmt.Sprintf("%s: class %s is wanted", s.Name, s.Class)
	case Scale, Resize:
		return fmt.Sprintf("%s: %d are wanted", s.Name, s.N)
	case Rollback:
		return fmt.Sprintf("%s: back to revision %d", s.Name, s.N)
	case Pause, Resume, Delete:
		return fmt.Sprintf("%s: %s", s.Name, s.Do)
	case StopControl, StopTarget, JumpClock:
		return fmt.Sprintf("%s for %s", s.Do, s.For)
	case PauseMachine, PauseSet:
		return fmt.Sprintf("%s %d for %s", s.Do, s.N, s.For)
	case Preserve, PreserveNode, Prioritize:
		return fmt.Sprintf("%s %d: %q", s.Do, s.N, s.Value)
	case ScaleDown, Retag:
		return fmt.Sprintf("%s: %s %d", s.Name, s.Do, s.N)
	case Tag:
		return fmt.Sprintf("%s %s %d", s.Do, s.Class, s.N)
	case RemakeClass, RollBriefly, SpoilTemplate, SpoilClass:
		return fmt.Sprintf("%s: %s %s for %s", s.Name, s.Do, s.Class, s.For)
	case StopZone, FlickerNodes, RegisterNode, StripNode, FightOverNodes, TouchObjects, HoldDrain, HoldVM:
		return fmt.Sprintf("%s %d for %s", s.Do, s.N, s.For)
	}
	if isPoolAction(s.Do) {
		return fmt.Sprintf("%s: %s %d%s%s %s", s.Name, s.Do, s.N, s.Class, s.Value, s.For)
	}
	return fmt.Sprintf("%s %d", s.Do, s.N)
}
