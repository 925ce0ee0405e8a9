// Package decision holds what all decisions share: the reason of a plan ([Why]), the age of the reads that
// it is based on ([Freshness]), and the order in which the steps of a decision are tried ([FirstOf]).
//
// A package with decisions declares each of its reasons once, with the sentence that explains it:
//
//	var reasonCreate = decision.NewReason("Create", "{have} of {want} machines: creating {count}")
//
// A plan then carries a value that costs no allocation, and that prints as a sentence:
//
//	why := decision.Why{Reason: reasonCreate, Have: 3, Want: 5, Count: 2}
//	why.String() // "3 of 5 machines: creating 2"
package decision
