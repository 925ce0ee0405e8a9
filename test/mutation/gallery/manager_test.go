package gallery_test

// ofManager are mistakes in package manager.
var ofManager = []mutant{
	{
		name:   "a new label on a secret ends the backoff of refused calls",
		breaks: "P63",
		file:   "manager/internal/secrets/secrets.go",
		from:   "\t\tmaps.Copy(data, secret.Data)\n\t})\n\tif data == nil",
		to:     "\t\tmaps.Copy(data, secret.Data)\n\t\tdata[\"version\"] = []byte(secret.Version)\n\t})\n\tif data == nil",
		by:     openStorms,
	},
	{
		name:   "a call that waits for a change is repeated in every pass",
		breaks: "P63",
		file:   "manager/internal/machines/answers.go",
		from:   "age < repeatAfter && sameInputs",
		to:     "age < time.Second && sameInputs",
		by:     "TestP63TouchesRepeatNoCall",
	},
	{
		name:   "a call that waits for a change is not repeated after a change",
		breaks: "P63",
		file:   "manager/internal/machines/pace.go",
		from:   "p.taken.waits && (at.IsZero()",
		to:     "!p.taken.waits && (at.IsZero()",
		by:     "TestP63TouchesRepeatNoCall",
	},
	{
		name:   "the writes to a node are forgotten after the pass",
		breaks: "P64",
		file:   "manager/internal/machines/effects.go",
		from:   "p.written.Change(p.Key, func(w *machine.NodeWrites) { *w = all })",
		to:     "p.written.Forget(p.Key)",
		by:     openStorms,
	},
	{
		name:   "orphan VMs are deleted by name instead of ID",
		breaks: "of several VMs of one name, the one that a machine has recorded stays",
		file:   "manager/internal/fleet/orphans.go",
		from:   "m.Spec.ProviderID, m.Spec.Class.Name = order.ProviderID, order.Class.Name",
		to:     "m.Spec.Class.Name = order.Class.Name",
	},
	{
		name:   "the finalizer of a class is removed while machines of it are being deleted",
		breaks: "a class stays as long as a machine refers to it: without it no VM can be deleted",
		file:   "manager/internal/classes/classes.go",
		from:   "func(*machine.Machine) bool { return true })",
		to:     "func(m *machine.Machine) bool { return !m.Deleted() })",
		by:     "TestClassesOutliveTheirMachines",
	},
	{
		name:   "all VMs of a fleet are updated at the same time",
		breaks: "P7",
		file:   "manager/internal/machines/turns.go",
		from:   "Limit: limit,",
		to:     "Limit: 100 * limit,",
	},
	{
		name:   "one more node of a group is drained at a time than is allowed",
		breaks: "drains keep their limit",
		file:   "manager/engine/memory.go",
		from:   "case p.inUse(a) >= a.Limit:",
		to:     "case p.inUse(a) > a.Limit:",
		by:     "TestDrainSlots",
	},
	{
		name:   "drains that began before a restart need no permit",
		breaks: "P26",
		file:   "manager/drains/execute.go",
		from:   "if n.Drain != nil {",
		to:     "if n.Drain == nil {",
		by:     "TestDrainSlots",
	},
	{
		name:   "the permit of a node that is gone is not released",
		breaks: "P21",
		file:   "manager/drains/execute.go",
		from:   "errors.Is(err, store.ErrNotFound) || err == nil && n.UID != uid:",
		to:     "err == nil && n.UID != uid:",
		by:     "TestDrainSlots",
	},
	{
		name:   "a conflict in the write of a replacement slot is ignored",
		breaks: "P24",
		file:   "manager/internal/machines/budget.go",
		from: `	case *replacement.TakeFromDeployment:
		stored, err := p.Deployments.Write(ctx, &engine.Write[*deployment.Deployment]{Before: o.Deployment, After: w.Deployment})
		if err != nil {`,
		to: `	case *replacement.TakeFromDeployment:
		stored, err := p.Deployments.Write(ctx, &engine.Write[*deployment.Deployment]{Before: o.Deployment, After: w.Deployment})
		if errors.Is(err, store.ErrConflict) {
			stored, err = w.Deployment, nil
		}
		if err != nil {`,
		by: "TestP24TwoAskAtTheSameTime",
	},
	{
		name:   "a change of a secret without a namespace wakes no class",
		breaks: "a change of a secret wakes its classes",
		file:   "manager/internal/index/index.go",
		from:   "return object.Key{Namespace: c.Namespace, Name: ref.Name}",
		to:     "return object.Key{Name: ref.Name}",
		by:     "TestSecretNamespaces",
	},
	{
		name:   "permits in use are reported in every pass",
		breaks: "P28",
		file:   "manager/state.go",
		from:   "if last, known := r.reported[at]; !known || last != now {",
		to:     "if last, known := r.reported[at]; !known || last == now {",
		by:     "TestPermitsAreReported",
	},
	{
		name:   "the metrics of a deployment's permits outlive it",
		breaks: "the metrics of an object end with it",
		file:   "manager/state.go",
		from: `		r.options.Hooks.Permits(kind, key, 0, 0)
`,
		to: "",
		by: "TestPermitsAreReported",
	},
	{
		name:   "a change that is collected with others wakes nothing",
		breaks: "P3",
		file:   "manager/run.go",
		from:   "q.AddAt(key, r.options.Runtime.Now().Add(r.settle(wake)))",
		to:     "_ = r.settle(wake)",
		by:     "TestWakesSettle",
	},
	{
		name:   "pods are evicted before all volumes are known",
		breaks: "P22",
		file:   "manager/drains/workload.go",
		from:   "o.Volumes, o.Complete = volumes, o.Complete && complete",
		to:     "o.Volumes, o.Complete = volumes, o.Complete || complete",
		by:     "TestDrainWaitsForVolumes",
	},
	{
		name:   "any write of a pool counts as the announcement of a call",
		breaks: "P36",
		file:   "manager/internal/pools/pools.go",
		from:   "p.o.Announced = p.o.Announced || p.plan.Announces",
		to:     "p.o.Announced = true",
		by:     "TestPoolKilledAtTwoCreates",
	},
	{
		name:   "Run does not report the calls that it abandoned",
		breaks: "P52",
		file:   "manager/run.go",
		from:   "if left.Calls = r.calls.Overdue(); len(left.Calls)+len(left.Places) > 0 {",
		to:     "if left.Calls = r.calls.Overdue(); len(left.Calls)+len(left.Places) < 0 {",
		by:     "TestRunNamesWhatItLeft",
	},
}
