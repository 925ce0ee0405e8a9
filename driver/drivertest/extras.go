package drivertest

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
)

// These are the checks of optional calls: updates, volumes, migrations.

var updateChecks = []check{
	{"is there where fields are updatable", updateIsDeclared},
	{"to the same spec is OK", updateToTheSame},
	{"is idempotent", updateIsIdempotent},
	{"can be taken back", updateTakenBack},
	{"whose answer was lost is repeated, or taken back", updateLost},
	{"with a note in another spelling is OK", updateRespelled},
	{"of an absent VM is NotFound", updateAbsent},
}

func updateIsDeclared(r *trial) {
	if len(driver.UpdatableFields(r.setup.Driver)) == 0 {
		r.NotRun("the driver declares no updatable fields")
	}
	v := r.created(r.machine())
	r.Settled()
	spec := r.setup.Class.ProviderSpec
	if _, err := r.update(r.Ctx, v.machine, spec, spec); codes.Of(err) == codes.Unimplemented {
		r.Errorf("the driver declares the updatable fields %q and has no UpdateMachine", driver.UpdatableFields(r.setup.Driver))
	}
}

func updateToTheSame(r *trial) {
	v := r.created(r.machine())
	r.Settled()
	spec := r.setup.Class.ProviderSpec
	_, err := r.update(r.Ctx, v.machine, spec, spec)
	r.supports(codes.UpdateMachine, err)
	if err != nil {
		r.Errorf("UpdateMachine without a difference: %v", err)
	}
	r.only(v.machine, "UpdateMachine replaces no VM", v)
	r.total(1, "UpdateMachine replaces no VM")
}

func updateIsIdempotent(r *trial) {
	if r.setup.Wanted == nil {
		r.NotRun("Setup has no Wanted")
	}
	v := r.created(r.machine())
	r.Settled()
	for range 2 {
		_, err := r.update(r.Ctx, v.machine, r.setup.Class.ProviderSpec, r.setup.Wanted)
		r.supports(codes.UpdateMachine, err)
		if err != nil {
			r.Errorf("UpdateMachine: %v", err)
		}
		r.Settled()
	}
	r.only(v.machine, "UpdateMachine replaces no VM", v)
	r.total(1, "UpdateMachine replaces no VM")
}

// updateTakenBack updates to Wanted and back. The suite can't see what a VM has, so it only checks
// the answers.
func updateTakenBack(r *trial) {
	if r.setup.Wanted == nil {
		r.NotRun("Setup has no Wanted")
	}
	v := r.created(r.machine())
	r.Settled()
	spec, wanted := r.setup.Class.ProviderSpec, r.setup.Wanted
	for _, way := range [][2][]byte{{spec, wanted}, {wanted, spec}, {spec, wanted}} {
		_, err := r.update(r.Ctx, v.machine, way[0], way[1])
		r.supports(codes.UpdateMachine, err)
		if err != nil {
			r.Errorf("UpdateMachine from one spec to another and back: %v", err)
		}
		r.Settled()
	}
	r.only(v.machine, "UpdateMachine replaces no VM", v)
}

// updateLost repeats an update whose answer was lost, and reverts one.
func updateLost(r *trial) {
	if r.setup.Wanted == nil {
		r.NotRun("Setup has no Wanted")
	}
	v := r.created(r.machine())
	r.Settled()
	spec, wanted := r.setup.Class.ProviderSpec, r.setup.Wanted
	for _, next := range [][2][]byte{{spec, wanted}, {wanted, spec}} {
		r.lose(codes.UpdateMachine)
		_, err := r.update(r.Ctx, v.machine, spec, wanted)
		r.lost(codes.UpdateMachine, err)
		if _, err = r.update(r.Ctx, v.machine, next[0], next[1]); err != nil {
			r.Errorf("UpdateMachine after one whose answer was lost: %v", err)
		}
		r.Settled()
	}
	r.only(v.machine, "UpdateMachine replaces no VM", v)
}

// updateRespelled passes the last applied spec in another spelling, as this library does if it
// knows only the values in it.
func updateRespelled(r *trial) {
	if r.setup.Wanted == nil {
		r.NotRun("Setup has no Wanted")
	}
	fields := driver.UpdatableFields(r.setup.Driver)
	if len(fields) == 0 {
		r.NotRun("the driver declares no updatable fields")
	}
	class := r.setup.Class.Clone()
	noted := machine.SplitSpec(class, fields)
	class.ProviderSpec = r.setup.Wanted
	if machine.SplitSpec(class, fields).Fixed != noted.Fixed {
		r.Fatalf("Setup.Wanted differs from the class in more than the updatable fields %q", fields)
	}
	var respelled bytes.Buffer
	if err := json.Indent(&respelled, machine.RestoreSpec(class, noted), "", "  "); err != nil {
		r.NotRun("the class's spec is no JSON object")
	}
	v := r.created(r.machine())
	r.Settled()
	_, err := r.update(r.Ctx, v.machine, respelled.Bytes(), r.setup.Wanted)
	r.supports(codes.UpdateMachine, err)
	if err != nil {
		r.Errorf("UpdateMachine from a spec in another spelling: %v", err)
	}
	r.only(v.machine, "UpdateMachine replaces no VM", v)
}

func updateAbsent(r *trial) {
	spec := r.setup.Class.ProviderSpec
	_, err := r.update(r.Ctx, r.machine(), spec, spec)
	r.supports(codes.UpdateMachine, err)
	r.absent(codes.UpdateMachine, err)
	r.total(0, "UpdateMachine makes no VM")
}

var volumeChecks = []check{
	{"of types it does not know are left out", volumesUnknown},
	{"it knows are named", volumesKnown},
}

// strange is a volume of no provider.
var strange = driver.Volume{Name: "drivertest", Type: "drivertest.example/volumes", Handle: "drivertest-1"}

func volumesUnknown(r *trial) {
	for _, volumes := range [][]driver.Volume{nil, {strange}, {{}, strange}} {
		a, err := r.volumes(r.Ctx, volumes)
		r.supports(codes.GetVolumeIDs, err)
		if err != nil || a == nil {
			r.Errorf("GetVolumeIDs of %d volumes that the driver does not know: %v", len(volumes), err)
			continue
		}
		if len(a.VolumeIDs) > 0 {
			r.Errorf("GetVolumeIDs answers %q for %d volumes that the driver does not know", a.VolumeIDs, len(volumes))
		}
	}
}

func volumesKnown(r *trial) {
	if len(r.setup.Volumes) == 0 {
		r.NotRun("Setup has no Volumes")
	}
	var want []string
	volumes := []driver.Volume{strange}
	for id, v := range r.setup.Volumes {
		want = append(want, id)
		volumes = append(volumes, v, strange)
	}
	slices.Sort(want)
	for range 2 {
		a, err := r.volumes(r.Ctx, volumes)
		r.supports(codes.GetVolumeIDs, err)
		if err != nil || a == nil {
			r.Fatalf("GetVolumeIDs of volumes that the driver knows and others: %v", err)
		}
		if got := slices.Sorted(slices.Values(a.VolumeIDs)); !slices.Equal(got, want) {
			r.Errorf("GetVolumeIDs answers %q, not %q", got, want)
		}
	}
}

var migrationChecks = []check{
	{"of a kind it does not know is refused", migrationUnknown},
	{"fills the class, and is idempotent", migrationFills},
}

func migrationUnknown(r *trial) {
	type strangeClass struct{}
	class := &machine.Class{Meta: r.setup.Class.CloneMeta()}
	_, err := r.migrate(&driver.GenerateMachineClassForMigrationRequest{
		ProviderSpecificClass: &strangeClass{},
		Class:                 class,
		ClassRef:              machine.ClassRef{APIGroup: "drivertest.example", Kind: "StrangeClass", Name: class.Name},
	})
	if code := codes.Of(err); code != codes.Unimplemented && code != codes.Internal {
		r.Errorf("GenerateMachineClassForMigration answers %s for a kind that can't be known, not %s or %s (%v)",
			code, codes.Unimplemented, codes.Internal, err)
	}
}

func migrationFills(r *trial) {
	if r.setup.Migration == nil {
		r.NotRun("Setup has no Migration")
	}
	q := r.setup.Migration()
	blank := q.Class.Clone()
	_, err := r.migrate(q)
	r.supports(codes.GenerateMachineClassForMigration, err)
	if err != nil {
		r.Fatalf("GenerateMachineClassForMigration: %v", err)
	}
	if q.Class.SpecEqual(blank) {
		r.Errorf("GenerateMachineClassForMigration answered OK and left the class as it was")
	}
	again := r.setup.Migration()
	again.Class = q.Class.Clone()
	if _, err := r.migrate(again); err != nil {
		r.Fatalf("GenerateMachineClassForMigration into a class that is filled already: %v", err)
	}
	if !again.Class.SpecEqual(q.Class) {
		r.Errorf("GenerateMachineClassForMigration changes a class that it has filled itself")
	}
}
