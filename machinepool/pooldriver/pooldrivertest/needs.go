package pooldrivertest

import "github.com/millwright-go/millwright/driver/conformance"

// Checks that others build on.
const (
	createMakesIt   = "Create/makes the group, and its instances come"
	createRepeats   = "Create/is idempotent by name"
	createsOneAPool = "Create/makes one group a pool"
	deleteRemovesIt = "Delete/removes group and instances, and is idempotent"
	absentIsMissing = "Status/of an absent group is NotFound"
	absentDeletes   = "Delete/of an absent group is OK"
	absentScales    = "Scale/of an absent group is NotFound"
	undecodable     = "Arguments/a spec that can't be decoded is Internal"
	declaredIsThere = "Instances/what is declared is there, and nothing else"
	deletesNamed    = "Instances/deleted are those that were named"
	deletesOnce     = "Instances/deleting again takes no others"
	groupSpells     = "Spelling/of group IDs is one in create, status and list"
	instanceSpells  = "Spelling/of instance IDs is one in every answer"
	listNamesThem   = "List/names each group with its pool, until it is deleted"
	scaleRepeats    = "Scale/brings the group to its size, and is idempotent"
	statusRepeats   = "Status/changes nothing, and is the same again"
)

// duties says what checks build on, and why they matter.
var duties = conformance.Duties{Basis: createMakesIt, Needs: needs, Why: why}

// needs says which checks a check builds on.
var needs = map[string][]string{
	createRepeats:                       {statusRepeats},
	"Create/adopts a group of any size": {createRepeats},

	statusRepeats: {instanceSpells},

	scaleRepeats:                                         {instanceSpells, statusRepeats},
	"Scale/to nothing and back":                          {scaleRepeats},
	"Scale/leaves other groups alone":                    {createsOneAPool, scaleRepeats},
	"Update/keeps the size, and is idempotent":           {scaleRepeats},
	"Update/to other bounds of updates replaces nothing": {instanceSpells, statusRepeats, "Update/keeps the size, and is idempotent"},

	deleteRemovesIt: {absentIsMissing, createRepeats, createsOneAPool, absentDeletes},
	"Delete/finds the group when no ID was recorded": {absentIsMissing, deleteRemovesIt},

	deletesNamed: {declaredIsThere, instanceSpells, statusRepeats},
	deletesOnce:  {deletesNamed},
	"Instances/another group's are not deleted":                 {createsOneAPool, deletesNamed},
	"Instances/replaced is the one that was named, once":        {declaredIsThere, instanceSpells, statusRepeats},
	"Instances/goes when the provider is told that it is empty": {instanceSpells, statusRepeats},
	"Instances/telling of others changes nothing":               {instanceSpells, statusRepeats},

	listNamesThem:                       {groupSpells, deleteRemovesIt},
	"List/is the same again":            {listNamesThem},
	"List/does not name others' groups": {listNamesThem},
	"List/a deletion by ID spares another group of the pool": {listNamesThem, "List/is the same again"},
	"List/of a class that is wrong is refused":               {listNamesThem, undecodable},

	"Cluster/others' groups are neither found nor changed": {absentIsMissing, absentScales, absentDeletes},

	"Delete/removes what was made with the group": {deleteRemovesIt},

	"Quota/that is used up is ResourceExhausted, or a failure of the group": {scaleRepeats},
	"Quota/that is raised brings the group to its size":                     {scaleRepeats},

	"Secrets/without its secret no group is gone": {deleteRemovesIt},

	"Context/a canceled call ends":          {createRepeats, deleteRemovesIt},
	"Context/a call past its deadline ends": {createRepeats, deleteRemovesIt},

	"Concurrent/creates of one name make one group":        {createRepeats},
	"Concurrent/creates of many names make as many groups": {createsOneAPool},
	"Concurrent/deletes of one group all end":              {deleteRemovesIt},

	"LostAnswer/of a create: the next one adopts":                         {createRepeats},
	"LostAnswer/of a deletion of instances: the next one takes no others": {deletesOnce},
	"LostAnswer/of a delete: the next one is OK":                          {deleteRemovesIt},

	"Processes/a second one finds, resizes, adopts and deletes what the first made": {createRepeats, scaleRepeats, deleteRemovesIt},
}
