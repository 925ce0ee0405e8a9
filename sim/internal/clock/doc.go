// Package clock is the virtual time of a simulated world. A Clock runs what is due, one thing after
// another, and lets tasks wait for each other without a goroutine that runs beside them.
package clock
