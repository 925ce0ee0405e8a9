package drivertest

var why = map[string]string{
	"Create":                                   "the library knows of a machine's VM and node what CreateMachine answered",
	createRepeats:                              "after a crash or a lost answer the library creates again: a second VM runs, is paid for, and belongs to no machine",
	"Create/makes one VM a name":               "with one VM for two machines, the deletion of one takes the VM of the other",
	"Create/refuses a VM that differs":         "the machine would run on a VM of another size or image, and nothing would say so",
	"Create/goes on with and without its note": "LastKnownState is lost if the manager dies before it is stored",

	"Spelling": "the library takes a VM in another spelling for a stranger's, so it finds no orphan of the class",
	"List":     "a VM that is listed and belongs to no machine is deleted as an orphan; without a cluster, a machine whose VM is not listed is replaced",
	"Status":   "the library asks before each create, and takes NOT_FOUND for gone",

	"Delete":       "the library forgets a machine once DeleteMachine answers OK: a VM that is left runs on and is paid for",
	deletesAll:     "no one else knows of disks and addresses that are left, and they are paid for",
	"Quota":        "after RESOURCE_EXHAUSTED the library slows the class down and waits; after other codes it asks again soon",
	quotaComesBack: "a create that is refused is repeated until there is room: each attempt could leave something behind",
	"Delete/with a provider ID deletes exactly that VM":                 "a delete of one machine would take the VM of another",
	"Delete/with the ID of a VM that is gone spares its namesake":       "a delete that is repeated late would take the VM of the next machine",
	"Delete/that comes late spares a machine made again under its name": "a delete that is repeated late would take the VM of the next machine",

	"Initialize": "the library initializes again after a crash or a lost answer",
	"Health":     "a machine whose VM is called unhealthy is replaced",
	"Cluster":    "several clusters share an account: one would delete the VMs of another as orphans",
	"Update":     "an update in place is repeated after a crash, and taken back in a rollback",
	"Volumes":    "a drain waits for the volumes that the driver names",
	"Migration":  "a migration that was interrupted is repeated",
	"Arguments":  "the code decides whether the library tries again soon or waits for a change, and what it stores",
	"Secrets":    "what is not found counts as gone, and messages are stored and shown to everyone who may see a machine",
	"Context":    "a call that does not end holds a worker of the manager, and a shutdown",
	"Concurrent": "machines are created many at a time, and calls overlap after a crash or with a second manager",
	"LostAnswer": "connections break and processes die after the provider has done its work",
	"Faults":     "a provider fails in the middle of a call, and the driver's answer is all that the library knows then",
	"Processes":  "another process takes over after a crash, and for a moment two may be at work: only the provider knows what both did",
}
