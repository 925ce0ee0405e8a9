package drivertest

import "github.com/millwright-go/millwright/driver/conformance"

// These are the checks that others build on.
const (
	createAnswersIt = "Create/answers what the VM is called"
	createRepeats   = "Create/is idempotent by name"
	deleteRemovesIt = "Delete/removes the VM, and is idempotent"
	createsFail     = "Faults/of a create: the next one adopts, and nothing is left behind"
	deletesAll      = "Delete/removes what was made with the VM"
	everyPage       = "List/has the VMs of every page"
	listShows       = "List/has each VM under its ID, with its machine"
	listSpells      = "Spelling/of IDs and names is one in create and list"
	quotaComesBack  = "Quota/that is raised makes one VM, and leaves nothing behind"
	secondAdopts    = "Processes/a second one adopts and deletes what the first made"
	statusShows     = "Status/answers what create did"
	statusSpells    = "Spelling/of IDs and names is one in create and status"
)

// duties says what checks build on, and why they matter. Volumes and migrations need no VM.
var duties = conformance.Duties{
	Basis: createAnswersIt, Apart: []string{"Volumes", "Migration"}, Needs: needs, Why: why,
}

var needs = map[string][]string{
	listShows:                                  {listSpells},
	everyPage:                                  {listSpells, listShows},
	"List/is the same again":                   {listSpells, listShows},
	"List/has no VM that is gone":              {listSpells, listShows, deleteRemovesIt},
	statusShows:                                {statusSpells},
	"Status/is of the machine asked for":       {statusSpells, statusShows},
	"Status/is read-only":                      {statusSpells, statusShows},
	"Status/says Uninitialized where it is so": {statusSpells, statusShows},
	"Status/of an absent VM is NotFound":       {deleteRemovesIt},

	"Create/goes on with and without its note": {createRepeats, deleteRemovesIt},
	"Create/refuses a VM that differs":         {createRepeats},

	deletesAll: {deleteRemovesIt},
	"Delete/finds the VM by name when no ID was recorded":               {deleteRemovesIt},
	"Delete/finds the VM of a machine made again under its name":        {createRepeats, deleteRemovesIt},
	"Delete/that comes late spares a machine made again under its name": {createRepeats, deleteRemovesIt},
	"Delete/with a provider ID deletes exactly that VM":                 {deleteRemovesIt},
	"Delete/with the ID of a VM that is gone spares its namesake":       {createRepeats, deleteRemovesIt},

	quotaComesBack: {createRepeats, deleteRemovesIt, deletesAll},

	"Health/of a VM that works is not bad":                 {listSpells, statusSpells},
	"Health/of a VM that fails is told by list and status": {listSpells, statusSpells},
	"Cluster/others' VMs are not listed":                   {listSpells, listShows},

	"Secrets/without its secret no VM is gone": {deleteRemovesIt, listSpells, listShows},

	"Context/a canceled call ends":                {createRepeats, deleteRemovesIt},
	"Context/a call past its deadline ends":       {createRepeats, deleteRemovesIt},
	"Context/a create is cut off by its deadline": {createRepeats},
	"Context/a call under way ends":               {createRepeats, deleteRemovesIt},

	"Concurrent/creates of one name make one VM": {createRepeats},
	"Concurrent/deletes of one VM all end":       {deleteRemovesIt},

	"LostAnswer/of a create: the next one adopts":   {createRepeats},
	"LostAnswer/of a create: the VM can be deleted": {deleteRemovesIt},
	"LostAnswer/of a delete: the next one is OK":    {deleteRemovesIt},

	createsFail: {createRepeats, deleteRemovesIt, deletesAll, quotaComesBack},
	"Faults/of a delete: OK means that the VM is gone": {createRepeats, deleteRemovesIt, deletesAll},
	"Faults/of a status: no VM is taken for gone":      {statusSpells, statusShows},
	"Faults/of a list: no VM is left out":              {listSpells, listShows, everyPage},

	secondAdopts: {createRepeats, deleteRemovesIt},
	"Processes/creates of one name from two make one VM": {createRepeats, secondAdopts},
}
