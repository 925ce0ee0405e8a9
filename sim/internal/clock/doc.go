// Package clock is the virtual time of a simulated world. A Clock runs timers one after another, and
// tasks that can pause and wait for each other. Only one of them runs at a time.
package clock
