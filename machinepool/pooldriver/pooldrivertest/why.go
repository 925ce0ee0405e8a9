package pooldrivertest

// why says why a duty matters, by its group ("Create") or its check.
var why = map[string]string{
	"Create":                            "the library knows of a pool's group what CreatePool and GetPoolStatus answered",
	createRepeats:                       "after a crash or a lost answer the library creates again: a second group runs, is paid for, and belongs to no pool",
	"Create/adopts a group of any size": "an autoscaler may own the size, and a create that is repeated late would undo what it did",
	createsOneAPool:                     "with one group for two pools, the deletion of one takes the nodes of the other",
	"Spelling":                          "the library takes a group in another spelling for a stranger's, and does not find the node of an instance",
	"Status":                            "the library looks before each call, and decides by what it sees",
	absentIsMissing:                     "the library makes a group again, and forgets a pool, when its group is gone",
	"Scale":                             "a size is repeated after a crash or a lost answer, and while instances come and go",
	"Update":                            "an update is repeated, and the size may be an autoscaler's",
	"Update/to other bounds of updates replaces nothing": "to change how carefully nodes are replaced would replace them all",
	"Delete":    "the library forgets a pool once DeletePool answers OK: instances that are left run on and are paid for",
	"Instances": "the library drains an instance before it names it: another one would go with its pods",
	"Instances/goes when the provider is told that it is empty": "the provider waits for the drain, and would go on waiting",
	"List": "a group that is listed and belongs to no pool is deleted",
	"List/a deletion by ID spares another group of the pool": "a delete that is repeated late would take the group of the next pool of that name",
	"List/of a class that is wrong is refused":               "an empty list would be taken for an empty account",
	"Cluster":    "several clusters share an account: one would resize or delete the groups of another",
	"Quota":      "after RESOURCE_EXHAUSTED the pool is Failed with the reason, and tried again slowly; other codes are tried again soon",
	"Arguments":  "the code decides whether the library tries again soon or waits for a change, and what it stores",
	"Secrets":    "what is not found counts as gone, and messages are stored and shown to everyone who may see a pool",
	"Context":    "a call that does not end holds a worker of the manager, and a shutdown",
	"Concurrent": "calls overlap after a crash or with a second manager",
	"LostAnswer": "connections break and processes die after the provider has done its work",
	"Processes":  "another process takes over after a crash: only the provider knows what both did",
}
