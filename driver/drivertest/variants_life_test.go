package drivertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
)

type (
	initializeRequest  = driver.InitializeMachineRequest
	initializeResponse = driver.InitializeMachineResponse
	listRequest        = driver.ListMachinesRequest
	listResponse       = driver.ListMachinesResponse
)

var healthVariants = []variant{
	{"calls every VM unhealthy", func(b *broken) {
		b.status = func(ctx context.Context, req *statusRequest) (*statusResponse, error) {
			r, err := b.Memory.GetMachineStatus(ctx, req)
			if r != nil {
				r.Unhealthy = "not running"
			}
			return r, err
		}
	}, map[string]string{"Health/of a VM that works is not bad": "which is wrong"}},
	{"lists every VM as unhealthy", func(b *broken) {
		b.list = func(ctx context.Context, req *listRequest) (*listResponse, error) {
			r, err := b.Memory.ListMachines(ctx, req)
			if r != nil {
				for id := range r.Machines {
					r.Unhealthy[id] = true
				}
			}
			return r, err
		}
	}, map[string]string{"Health/of a VM that works is not bad": "which is wrong"}},
	{"tells of an unhealthy VM in the list alone", func(b *broken) {
		b.status = func(ctx context.Context, req *statusRequest) (*statusResponse, error) {
			r, err := b.Memory.GetMachineStatus(ctx, req)
			if r != nil {
				r.Unhealthy = ""
			}
			return r, err
		}
	}, map[string]string{"Health/of a VM that fails is told by list and status": "GetMachineStatus says"}},
	{"tells of an unhealthy VM in the status alone", func(b *broken) {
		b.list = func(ctx context.Context, req *listRequest) (*listResponse, error) {
			r, err := b.Memory.ListMachines(ctx, req)
			if r != nil {
				r.Unhealthy = nil
			}
			return r, err
		}
	}, map[string]string{"Health/of a VM that fails is told by list and status": "ListMachines says"}},
	{"says another thing of an unhealthy VM each time", func(b *broken) {
		asked := 0
		b.status = func(ctx context.Context, req *statusRequest) (*statusResponse, error) {
			r, err := b.Memory.GetMachineStatus(ctx, req)
			if r != nil && r.Unhealthy != "" {
				asked++
				r.Unhealthy += fmt.Sprint(" for ", asked)
			}
			return r, err
		}
	}, map[string]string{"Health/of a VM that fails is told by list and status": "changes only with the VM"}},
	{"does not find a VM that is stopped", func(b *broken) {
		b.status = func(ctx context.Context, req *statusRequest) (*statusResponse, error) {
			r, err := b.Memory.GetMachineStatus(ctx, req)
			if r != nil && r.Unhealthy != "" {
				return nil, codes.New(codes.NotFound, "no VM of that name runs")
			}
			return r, err
		}
	}, map[string]string{"Health/of a VM that fails is told by list and status": "of a VM that exists"}},
	{"lists an unhealthy VM that is gone", func(b *broken) {
		was := map[string]bool{}
		b.list = func(ctx context.Context, req *listRequest) (*listResponse, error) {
			r, err := b.Memory.ListMachines(ctx, req)
			if r != nil {
				maps.Copy(was, r.Unhealthy)
				r.Unhealthy = maps.Clone(was)
			}
			return r, err
		}
	}, map[string]string{"Health/of a VM that fails is told by list and status": "which it does not list"}},
}

var deleteVariants = []variant{
	{"finds nothing to delete", func(b *broken) {
		b.remove = func(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
			if id := req.Machine.Spec.ProviderID; id != "" && !slices.ContainsFunc(b.VMs(), func(vm MemoryVM) bool { return vm.ID == id }) {
				return nil, codes.Newf(codes.NotFound, "there is no VM %s", id)
			}
			return b.Memory.DeleteMachine(ctx, req)
		}
	}, map[string]string{
		"Delete/removes the VM, and is idempotent":                    "must be answered with OK",
		"Delete/with the ID of a VM that is gone spares its namesake": "must be answered with OK",
		"LostAnswer/of a delete: the next one is OK":                  "NotFound",
		"Concurrent/deletes of one VM all end":                        "NotFound",
	}},
	{"complains about a VM that never was", func(b *broken) {
		b.remove = func(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
			if len(b.existing(req.Machine.Name, spec(req.Class.ProviderSpec))) == 0 {
				return nil, codes.New(codes.NotFound, "there is no such VM")
			}
			return b.Memory.DeleteMachine(ctx, req)
		}
	}, map[string]string{"Delete/of an absent VM is OK": "never was must be answered with OK"}},
	{"deletes nothing", func(b *broken) {
		b.remove = func(context.Context, *deleteRequest) (*deleteResponse, error) { return &deleteResponse{}, nil }
	}, map[string]string{
		"Delete/removes the VM, and is idempotent":      "still exists",
		"Context/a call past its deadline ends":         "still exists",
		"LostAnswer/of a create: the VM can be deleted": "deleted by name",
		"List/has no VM that is gone":                   "ListMachines has",
		"Concurrent/deletes of one VM all end":          "still exists",
	}},
	{"deletes by name although there is an ID", func(b *broken) {
		b.remove = func(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
			own := *req
			own.Machine = req.Machine.Clone()
			own.Machine.Spec.ProviderID = ""
			return b.Memory.DeleteMachine(ctx, &own)
		}
	}, map[string]string{
		"Delete/with a provider ID deletes exactly that VM":           "says which VM to delete",
		"Delete/with the ID of a VM that is gone spares its namesake": "is gone",
	}},
	{"deletes by ID and, failing that, by name", func(b *broken) {
		b.remove = func(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
			own := *req
			own.Machine = req.Machine.Clone()
			if !b.Remove(req.Machine.Spec.ProviderID) {
				own.Machine.Spec.ProviderID = ""
			}
			return b.Memory.DeleteMachine(ctx, &own)
		}
	}, map[string]string{"Delete/with the ID of a VM that is gone spares its namesake": "that one was gone"}},
	{"deletes by ID alone", func(b *broken) {
		b.remove = func(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
			if req.Machine.Spec.ProviderID == "" && req.Machine.Name != "" {
				return &deleteResponse{}, nil
			}
			return b.Memory.DeleteMachine(ctx, req)
		}
	}, map[string]string{
		"Delete/finds the VM by name when no ID was recorded":        "by the machine's name",
		"Delete/finds the VM of a machine made again under its name": "this machine's to delete",
	}},
	{"marks a VM with the first machine's UID alone", func(b *broken) {
		b.remove = func(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
			if strings.HasSuffix(req.Machine.UID, "-second") && req.Machine.Spec.ProviderID == "" {
				return &deleteResponse{}, nil
			}
			return b.Memory.DeleteMachine(ctx, req)
		}
	}, map[string]string{"Delete/finds the VM of a machine made again under its name": "this machine's to delete"}},
	{"complains about the VM of a machine made again", func(b *broken) {
		b.remove = func(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
			found := b.existing(req.Machine.Name, spec(req.Class.ProviderSpec))
			if len(found) > 0 && found[0].UID != req.Machine.UID {
				return nil, codes.New(codes.PreconditionFailed, "the VM is another machine's")
			}
			return b.Memory.DeleteMachine(ctx, req)
		}
	}, map[string]string{"Delete/that comes late spares a machine made again under its name": "the VM is another machine's"}},
}

var statusVariants = []variant{
	{"doesn't know whether a VM is there", func(b *broken) {
		b.status = func(ctx context.Context, req *statusRequest) (*statusResponse, error) {
			a, err := b.Memory.GetMachineStatus(ctx, req)
			if codes.Of(err) == codes.NotFound {
				return nil, codes.New(codes.Unknown, "the VM may be there")
			}
			return a, err
		}
	}, map[string]string{
		"Status/of an absent VM is NotFound": "answers Unknown",
		"Cluster/others' VMs are not found":  "answers Unknown",
	}},
	{"finds no VM in other words each time", func(b *broken) {
		var attempts atomic.Int64
		b.status = func(ctx context.Context, req *statusRequest) (*statusResponse, error) {
			a, err := b.Memory.GetMachineStatus(ctx, req)
			if codes.Of(err) == codes.NotFound {
				return nil, codes.Newf(codes.NotFound, "there is no such VM (request %d)", attempts.Add(1))
			}
			return a, err
		}
	}, map[string]string{"Status/of an absent VM is NotFound": "must not change from one attempt to the next"}},
	{"names a VM one way, then another", func(b *broken) {
		b.status = func(ctx context.Context, req *statusRequest) (*statusResponse, error) {
			a, err := b.Memory.GetMachineStatus(ctx, req)
			if a != nil {
				a.NodeName += ".internal"
			}
			return a, err
		}
	}, map[string]string{"Status/answers what create did": `.internal"`}},
	{"answers the first VM that there is", func(b *broken) {
		b.status = func(ctx context.Context, req *statusRequest) (*statusResponse, error) {
			a, err := b.Memory.GetMachineStatus(ctx, req)
			if all := b.VMs(); a != nil {
				a.ProviderID, a.NodeName = all[0].ID, all[0].Name
			}
			return a, err
		}
	}, map[string]string{"Status/is of the machine asked for": "CreateMachine answered VM"}},
	{"initializes when asked how it is", func(b *broken) {
		b.status = func(ctx context.Context, req *statusRequest) (*statusResponse, error) {
			a, err := b.Memory.GetMachineStatus(ctx, req)
			if codes.Of(err) == codes.Uninitialized {
				again := initializeRequest{Machine: req.Machine, Class: req.Class, Secret: req.Secret}
				_, _ = b.Memory.InitializeMachine(ctx, &again)
			}
			return a, err
		}
	}, map[string]string{"Status/is read-only": "it changes nothing"}},
	{"hides that a VM is not initialized", func(b *broken) {
		b.status = func(ctx context.Context, req *statusRequest) (*statusResponse, error) {
			a, err := b.Memory.GetMachineStatus(ctx, req)
			if codes.Of(err) == codes.Uninitialized {
				err = nil
			}
			return a, err
		}
	}, map[string]string{"Status/says Uninitialized where it is so": "answers OK"}},
	{"says Uninitialized and not of which VM", func(b *broken) {
		b.status = func(ctx context.Context, req *statusRequest) (*statusResponse, error) {
			a, err := b.Memory.GetMachineStatus(ctx, req)
			if err != nil {
				a = nil
			}
			return a, err
		}
	}, map[string]string{"Status/says Uninitialized where it is so": "has no response"}},
	{"initializes nothing", func(b *broken) {
		b.initialize = func(ctx context.Context, _ *initializeRequest) (*initializeResponse, error) {
			return &initializeResponse{}, ctx.Err()
		}
	}, map[string]string{
		"Status/says Uninitialized where it is so":            "has to be initialized",
		"Initialize/is idempotent":                            "has to be initialized",
		"Initialize/of an absent VM is NotFound":              "answers OK",
		"LostAnswer/of an initialization: the next one is OK": "did not make InitializeMachine fail",
	}},
	{"initializes once only", func(b *broken) {
		b.initialize = func(ctx context.Context, req *initializeRequest) (*initializeResponse, error) {
			if vms := b.existing(req.Machine.Name, spec(req.Class.ProviderSpec)); len(vms) > 0 && vms[0].Initialized {
				return nil, codes.New(codes.PreconditionFailed, "the VM is initialized already")
			}
			return b.Memory.InitializeMachine(ctx, req)
		}
	}, map[string]string{
		"Initialize/is idempotent":                            "initialized already",
		"LostAnswer/of an initialization: the next one is OK": "initialized already",
	}},
	{"forgets an initialization whose answer was lost", func(b *broken) {
		b.initialize = func(ctx context.Context, req *initializeRequest) (*initializeResponse, error) {
			id := req.Machine.Spec.ProviderID
			if _, lost := b.asked.Load(id); lost {
				return &initializeResponse{}, nil
			}
			a, err := b.Memory.InitializeMachine(ctx, req)
			if codes.Of(err) == codes.Unavailable {
				b.seen(id)
				b.mu.Lock()
				defer b.mu.Unlock()
				b.vms[id].Initialized = false
			}
			return a, err
		}
	}, map[string]string{"LostAnswer/of an initialization: the next one is OK": "has to be initialized"}},
	{"names a VM differently each time", func(b *broken) {
		var n atomic.Int32
		b.status = func(ctx context.Context, req *statusRequest) (*statusResponse, error) {
			a, err := b.Memory.GetMachineStatus(ctx, req)
			if a != nil {
				a.NodeName = fmt.Sprint(a.NodeName, n.Add(1))
			}
			return a, err
		}
	}, map[string]string{"Status/is read-only": "it changes nothing"}},
	{"initializes, and speaks of another VM", func(b *broken) {
		b.initialize = func(ctx context.Context, req *initializeRequest) (*initializeResponse, error) {
			a, err := b.Memory.InitializeMachine(ctx, req)
			if err == nil {
				a.ProviderID += "0"
			}
			return a, err
		}
	}, map[string]string{"Initialize/is idempotent": "InitializeMachine \"memory:///blue/10\""}},
	{"initializes by making another VM", func(b *broken) {
		b.initialize = func(ctx context.Context, req *initializeRequest) (*initializeResponse, error) {
			a, err := b.Memory.InitializeMachine(ctx, req)
			if err == nil {
				s := spec(req.Class.ProviderSpec)
				a.ProviderID = b.Add(MemoryVM{Name: a.NodeName, Cluster: s.Cluster, Size: s.Size, Initialized: true})
			}
			return a, err
		}
	}, map[string]string{"Initialize/is idempotent": "makes no VM"}},
}

const oneSpelling = "one spelling in all calls"

var listVariants = []variant{
	{"lists in upper case, with a slash", func(b *broken) {
		b.list = func(ctx context.Context, req *listRequest) (*listResponse, error) {
			a, err := b.Memory.ListMachines(ctx, req)
			if err == nil {
				spelled := map[string]string{}
				for id, name := range a.Machines {
					spelled[strings.ToUpper(id)] = name + "/"
				}
				a.Machines = spelled
			}
			return a, err
		}
	}, map[string]string{
		listSpells: oneSpelling,
		listShows:  "ListMachines has the IDs []",
	}},
	{"answers status with a prefix", func(b *broken) {
		b.status = func(ctx context.Context, req *statusRequest) (*statusResponse, error) {
			a, err := b.Memory.GetMachineStatus(ctx, req)
			if a != nil {
				a.ProviderID = "region-1:" + a.ProviderID
			}
			return a, err
		}
	}, map[string]string{statusSpells: oneSpelling}},
	{"lists everyone's VMs", func(b *broken) {
		b.list = func(ctx context.Context, req *listRequest) (*listResponse, error) {
			a, err := b.Memory.ListMachines(ctx, req)
			if err == nil {
				for _, vm := range b.VMs() {
					a.Machines[vm.ID] = vm.Name
				}
			}
			return a, err
		}
	}, map[string]string{"Cluster/others' VMs are not listed": "not []"}},
	{"lists names under names", func(b *broken) {
		b.list = func(ctx context.Context, req *listRequest) (*listResponse, error) {
			a, err := b.Memory.ListMachines(ctx, req)
			if err == nil {
				for id, name := range a.Machines {
					delete(a.Machines, id)
					a.Machines[name] = name
				}
			}
			return a, err
		}
	}, map[string]string{"List/has each VM under its ID, with its machine": "ListMachines has the IDs"}},
	{"lists VMs without their machines", func(b *broken) {
		b.list = func(ctx context.Context, req *listRequest) (*listResponse, error) {
			a, err := b.Memory.ListMachines(ctx, req)
			if err == nil {
				for id := range a.Machines {
					a.Machines[id] = ""
				}
			}
			return a, err
		}
	}, map[string]string{"List/has each VM under its ID, with its machine": "no machine name for the VMs"}},
	{"lists a VM that has no ID", func(b *broken) {
		b.list = func(ctx context.Context, req *listRequest) (*listResponse, error) {
			a, err := b.Memory.ListMachines(ctx, req)
			if err == nil {
				a.Machines[""] = "somebody"
			}
			return a, err
		}
	}, map[string]string{"List/is the same again": "without an ID"}},
	{"can't list", func(b *broken) {
		b.list = func(context.Context, *listRequest) (*listResponse, error) {
			return nil, codes.New(codes.PermissionDenied, "these credentials may not list")
		}
	}, map[string]string{"List/is the same again": "may not list"}},
	{"lists what it listed before", func(b *broken) {
		var mu sync.Mutex
		before := map[string]string{}
		b.list = func(ctx context.Context, req *listRequest) (*listResponse, error) {
			a, err := b.Memory.ListMachines(ctx, req)
			if err != nil {
				return a, err
			}
			mu.Lock()
			defer mu.Unlock()
			for id, name := range before {
				a.Machines[id] = name
			}
			before = a.Machines
			return &listResponse{Machines: a.Machines}, nil
		}
	}, map[string]string{"List/has no VM that is gone": "ListMachines has the IDs"}},
	{"lists every second time", func(b *broken) {
		b.list = func(ctx context.Context, req *listRequest) (*listResponse, error) {
			a, err := b.Memory.ListMachines(ctx, req)
			if err == nil && !b.seen(req.Class.Name) {
				a.Machines = nil
			}
			return a, err
		}
	}, map[string]string{"List/is the same again": "ListMachines has the IDs"}},
}

var clusterVariants = []variant{
	{"stumbles over others' VMs", func(b *broken) {
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			for _, vm := range b.VMs() {
				if vm.Name == req.Machine.Name && vm.Cluster != spec(req.Class.ProviderSpec).Cluster {
					return nil, codes.New(codes.Internal, "the VM has no tag of this cluster")
				}
			}
			return b.Memory.CreateMachine(ctx, req)
		}
	}, map[string]string{"Cluster/others' VMs are not adopted": "no tag of this cluster"}},
	{"looks up VMs of any cluster", func(b *broken) {
		b.status = func(ctx context.Context, req *statusRequest) (*statusResponse, error) {
			for _, vm := range b.VMs() {
				if ctx.Err() == nil && vm.Name == req.Machine.Name {
					return &statusResponse{ProviderID: vm.ID, NodeName: vm.Name}, nil
				}
			}
			return b.Memory.GetMachineStatus(ctx, req)
		}
	}, map[string]string{"Cluster/others' VMs are not found": "answers OK"}},
	{"deletes by name in any cluster", func(b *broken) {
		b.remove = func(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
			for _, vm := range b.VMs() {
				if ctx.Err() == nil && req.Machine.Spec.ProviderID == "" && vm.Name == req.Machine.Name {
					b.Remove(vm.ID)
				}
			}
			return b.Memory.DeleteMachine(ctx, req)
		}
	}, map[string]string{"Cluster/others' VMs are not deleted": "their own cluster only"}},
	{"deletes by ID in any cluster", func(b *broken) {
		b.remove = func(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
			if ctx.Err() == nil {
				b.Remove(req.Machine.Spec.ProviderID)
			}
			return b.Memory.DeleteMachine(ctx, req)
		}
	}, map[string]string{"Cluster/others' VMs are not deleted": "their own cluster only"}},
}
