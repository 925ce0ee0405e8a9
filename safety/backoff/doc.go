// Package backoff decides when the next machine of a class may be created, after the provider has
// refused the class: the quota is used up, or the class is wrong. Other classes are not slowed.
//
// It has no Decide, because there is nothing to observe: it is a state machine whose input is the
// provider's answers to this process. The caller keeps one [State] for each class.
//
//   - State.Slowed goes into the observation of each machine of the class that has no VM yet, before
//     every decision.
//   - State.Ask answers machine.AskCreate: it permits one create, which is the machine's turn, or says
//     when to ask again.
//   - State.Answer records the provider's answer to each create.
//   - State.Leave gives up an unused turn, if there is one. Call it at the end of each pass (reconcile)
//     of a machine, with or without an error.
//
// A [Pace] is for providers that limit the rate of calls. The caller keeps one for each set of
// credentials.
package backoff
