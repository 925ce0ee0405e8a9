package sim

import "time"

// App is a workload of equal pods with a disruption budget. A controller keeps their number.
type App struct {
	Name     string
	Replicas int
	// MinAvailable is how many pods the budget keeps healthy during evictions. Zero means no
	// budget.
	MinAvailable int
	Grace        time.Duration // of each pod
	// Boot is how long a pod takes from its binding to being healthy.
	Boot time.Duration
	// Volumes is how many persistent volumes each pod has. If it is zero, all pods are alike.
	// Otherwise each pod has a number, which gives its name and its volumes, and a pod that is gone
	// is replaced by one with the same number.
	Volumes int
	// Work makes the app a Job: each of its pods completes at most that long after it became
	// healthy, and another takes its place. If Work is zero, pods run until they are told to
	// terminate.
	Work time.Duration
	// Tolerates says that the pods tolerate everything, so that they are bound to cordoned nodes too.
	Tolerates bool
}
