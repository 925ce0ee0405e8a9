// Package workload is what runs on the cluster of the quickstart: apps, whose tasks are kept at
// their number, bound to nodes, and counted against disruption budgets. A drain knows them as pods,
// budgets and volumes.
//
// It keeps what it knows in memory, as a cluster's API server and controllers would in theirs, and
// orders agents by their desks (package task).
package workload

import (
	"time"

	"github.com/millwright-go/millwright/object"
)

// Namespace is where all apps are.
const Namespace = "apps"

// App is a number of equal tasks.
type App struct {
	Name     string // of the app; its tasks' names begin with it
	Replicas int
	// MaxUnavailable is how many tasks evictions may disrupt at a time.
	MaxUnavailable int
	// Volume gives each task a volume, which follows the name: a task with a volume always has the
	// name of the one before it, and is created after that one is gone.
	Volume bool

	Boot   time.Duration // of a task, until it serves
	Linger time.Duration // of a task that was told to end
	Grace  time.Duration // after which it is killed
	// Report is how long a task still exists as a finished one once its process has ended, as a
	// kubelet reports the end of a pod before its object is deleted.
	Report time.Duration
}

const appLabel = "app"

func (a *App) selector() *object.Selector {
	return &object.Selector{Labels: map[string]string{appLabel: a.Name}}
}
