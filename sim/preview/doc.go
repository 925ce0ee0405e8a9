// Package preview is what a preview of a rollout assumes and says: a Model of how long machines take,
// and a Timeline of what will happen. sim.Preview makes the one from the other.
package preview
