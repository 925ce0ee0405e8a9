// Package workload is what runs on the cluster of the quickstart: apps, whose
// tasks are kept at their number, put on nodes, and counted against disruption
// budgets. It is what a drain knows as pods, budgets and volumes.
//
// It keeps what it knows in memory, as a cluster's API server and controllers
// would in theirs, and tells agents by their desks (package task).
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
	// MaxUnavailable of the tasks may be disrupted at a time, as far as
	// evictions go.
	MaxUnavailable int
	// Volume has the tasks use a volume each, which follows the name: a task
	// with a volume always has the name of the one before it, and comes after
	// it is gone.
	Volume bool

	Boot   time.Duration // of a task, until it serves
	Linger time.Duration // of a task that was told to end
	Grace  time.Duration // after which it is killed
	// Report is how long a task is still there as a finished one once its process has
	// ended, as a kubelet reports the end of a pod before its object goes.
	Report time.Duration
}

const appLabel = "app"

func (a *App) selector() *object.Selector {
	return &object.Selector{Labels: map[string]string{appLabel: a.Name}}
}
