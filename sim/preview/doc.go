// Package preview has the input and the output of a preview of a rollout: a Model of how long machines
// take, and a Timeline of what will happen. sim.Preview computes the timeline from the model.
package preview
