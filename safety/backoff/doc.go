// Package backoff decides when the next machine of a class is created, after the provider has
// refused the class: its quota is used up, or the class is wrong. Other classes are not slowed.
//
// It has no Decide, because there is nothing to observe: it is a state machine over the answers
// that this process has had. The caller keeps one [State] for each class.
//
//   - State.Slowed goes into the observation of each machine of the class that has no VM yet, before
//     every decision.
//   - State.Ask answers machine.AskCreate: now, or later.
//   - State.Answer takes the answer of each create.
//   - State.Leave gives up a turn that led to no answer. Call it when the machine's pass has ended,
//     with or without an error.
//
// A [Pace] is for providers that limit how many calls they take, and is kept for each set of
// credentials.
package backoff
