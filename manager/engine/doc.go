// Package engine makes passes over objects of any kind: it reads, decides and executes. It knows no
// kind. Package manager composes its reconcilers from it; anyone may add a kind of their own.
//
// EXPERIMENTAL: the names in this package may change with any release.
//
// A kind says how to begin a pass ([Kind.Begin]), and a pass is three steps ([Steps]): Read fills in
// what the decision is made from, Decide makes a plan of it, Execute carries the plan out and puts the
// answers where Decide finds them. Decide and Execute take turns until a plan waits. The engine sees
// the [Step] of each plan, and does the rest:
//
//   - A pass has at most 64 plans. After a conflict it begins again from live reads, until the 4th
//     conflict. A plan that must not come twice says so ([Step.Key]).
//   - In a dry run ([Options.DryRun]) no plan that acts is executed. The engine tells what it would
//     change, and ends the pass. If the plan rests on caches, the pass reads live and decides again
//     before anything is reported.
//   - A panic of a decision, a port, an order of a batch or a hook is that pass's error, see [Guard].
//   - It counts failures in a row, tells each event once, and times effects, see [Pass].
//   - Waits get a jitter, see [Engine.Wait].
//
// [Batch] carries out many orders at once, in order, or slowly at first. [Queue] hands out the keys that are
// due to workers ([Engine.Work]), and [Permits] limits how much is under way.
package engine
