package overshoot

import (
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
)

// Observation is a deployment with its sets, or a set without a deployment, and their machines. It may come from
// caches, because the next decision corrects a mistake.
type Observation struct {
	// Deployment owns the sets. Nil: there is none, and Sets holds one set.
	Deployment *deployment.Deployment
	// Sets are all sets that the deployment owns, in any order. Without a deployment, only the first one
	// counts.
	Sets []deployment.Children
}

// Write is one change in the store: *LabelDeployment, *LabelSet or *TellDeployment.
//
//sumtype:decl
type Write interface{ write() }

// LabelDeployment stores a deployment's metadata.
type LabelDeployment struct{ Deployment *deployment.Deployment }

// LabelSet stores a set's metadata.
type LabelSet struct{ Set *machineset.Set }

// TellDeployment stores a deployment's status.
type TellDeployment struct{ Status deployment.Status }

func (*LabelDeployment) write() {}
func (*LabelSet) write()        {}
func (*TellDeployment) write()  {}

// Plan is what to do next: Write, or nothing until something changes.
type Plan struct {
	// Write compares and swaps. The store's answer replaces the observed object. A conflict, or a
	// "not found", ends the pass.
	Write Write
	Why   decision.Why
	// Warn is a warning for the owner. Zero: there is none.
	Warn decision.Why
}
