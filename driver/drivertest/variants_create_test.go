package drivertest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
)

// variant is a Memory with one bug.
type variant struct {
	name  string
	spoil func(*broken)
	// fails are checks that must fail, each with a text that its failure must contain.
	fails map[string]string
}

type (
	createRequest  = driver.CreateMachineRequest
	createResponse = driver.CreateMachineResponse
	statusRequest  = driver.GetMachineStatusRequest
	statusResponse = driver.GetMachineStatusResponse
	deleteRequest  = driver.DeleteMachineRequest
	deleteResponse = driver.DeleteMachineResponse
)

var createVariants = []variant{
	{"calls all nodes the same", func(b *broken) {
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			a, err := b.Memory.CreateMachine(ctx, req)
			if a != nil {
				a.NodeName = "localhost"
			}
			return a, err
		}
	}, map[string]string{"Create/makes one VM a name": `the same node name "localhost"`}},
	{"creates again what is there", func(b *broken) {
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			a, err := b.Memory.CreateMachine(ctx, req)
			s := spec(req.Class.ProviderSpec)
			if err == nil && len(b.existing(a.NodeName, s)) > 0 && b.seen(a.ProviderID) {
				a.ProviderID = b.Add(MemoryVM{Name: a.NodeName, Cluster: s.Cluster, Size: s.Size, Initialized: true})
			}
			return a, err
		}
	}, map[string]string{
		"Create/is idempotent by name":               "adopts the one that is there",
		"Create/goes on with and without its note":   "is answered at first",
		"Concurrent/creates of one name make one VM": "one VM",
	}},
	{"creates again when its answer was lost", func(b *broken) {
		lost := false
		b.failAfter = func(call codes.Call, err error) {
			lost = call == codes.CreateMachine
			b.Memory.FailAfter(call, err)
		}
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			a, err := b.Memory.CreateMachine(ctx, req)
			if err == nil && lost {
				s := spec(req.Class.ProviderSpec)
				b.Add(MemoryVM{Name: a.NodeName, Cluster: s.Cluster, Size: s.Size, Initialized: true})
			}
			return a, err
		}
	}, map[string]string{"LostAnswer/of a create: the next one adopts": "the VMs"}},
	{"loses track without its note", func(b *broken) {
		b.remove = func(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
			if req.Machine.Status.LastKnown == "" && req.Machine.Spec.ProviderID != "" {
				return &deleteResponse{}, nil
			}
			return b.Memory.DeleteMachine(ctx, req)
		}
	}, map[string]string{"Create/goes on with and without its note": "may have been lost"}},
	{"doesn't say what the VM is called", func(b *broken) {
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			if _, err := b.Memory.CreateMachine(ctx, req); err != nil {
				return nil, err
			}
			return &createResponse{}, nil
		}
	}, map[string]string{"Create/answers what the VM is called": "without a provider ID"}},
	{"answers nothing", func(b *broken) {
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			_, err := b.Memory.CreateMachine(ctx, req)
			return nil, err
		}
	}, map[string]string{"Create/answers what the VM is called": "OK and no response"}},
	{"has no node name", func(b *broken) {
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			a, err := b.Memory.CreateMachine(ctx, req)
			if err == nil {
				a.NodeName = ""
			}
			return a, err
		}
	}, map[string]string{"Create/answers what the VM is called": "without a node name"}},
	{"promises a VM that it does not make", func(b *broken) {
		b.create = func(context.Context, *createRequest) (*createResponse, error) {
			return &createResponse{ProviderID: "memory:///blue/none", NodeName: "none"}, nil
		}
	}, map[string]string{
		"Create/answers what the VM is called": "so there is one VM",
		"Create/makes one VM a name":           "a VM of its own",
		"Context/a canceled call ends":         "CreateMachine answered OK",
	}},
	{"adopts any VM that is there", func(b *broken) {
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			if all := b.VMs(); len(all) > 0 && ctx.Err() == nil {
				return &createResponse{ProviderID: all[0].ID, NodeName: all[0].Name}, nil
			}
			return b.Memory.CreateMachine(ctx, req)
		}
	}, map[string]string{
		"Create/makes one VM a name":                            "the same VM",
		"Create/refuses a VM that differs":                      "answers OK",
		"Cluster/others' VMs are not adopted":                   "adopted VM",
		"Concurrent/creates of many names make as many VMs":     "do not disturb each other",
		"Arguments/a machine without a name is InvalidArgument": "CreateMachine answers OK",
	}},
	{"races with itself", func(b *broken) {
		var running atomic.Int32
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			defer running.Add(-1)
			running.Add(1)
			for i := 0; running.Load() < 2 && i < 1000; i++ {
				runtime.Gosched()
			}
			a, err := b.Memory.CreateMachine(ctx, req)
			if err == nil && running.Load() > 1 {
				s := spec(req.Class.ProviderSpec)
				a.ProviderID = b.Add(MemoryVM{Name: a.NodeName, Cluster: s.Cluster, Size: s.Size, Initialized: true})
			}
			return a, err
		}
	}, map[string]string{"Concurrent/creates of one name make one VM": "when its creates race"}},
	{"does one thing at a time", func(b *broken) {
		var busy sync.Mutex
		b.around = func(ctx context.Context, call codes.Call, next func(context.Context) error) error {
			if !busy.TryLock() {
				return codes.New(codes.PreconditionFailed, "another call is being served")
			}
			defer busy.Unlock()
			for range 1000 {
				runtime.Gosched()
			}
			return next(ctx)
		}
	}, map[string]string{
		"Concurrent/creates of one name make one VM":        "to one of several calls",
		"Concurrent/creates of many names make as many VMs": "beside others",
		"Concurrent/deletes of one VM all end":              "to one of several calls",
	}},
}

var argumentVariants = []variant{
	{"takes any provider for its own", func(b *broken) {
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			own := *req
			own.Class = req.Class.Clone()
			own.Class.Provider = MemoryProvider
			return b.Memory.CreateMachine(ctx, &own)
		}
	}, map[string]string{"Arguments/a class of another provider is InvalidArgument": "CreateMachine answers OK"}},
	{"deletes for any provider", func(b *broken) {
		b.remove = func(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
			own := *req
			own.Class = req.Class.Clone()
			own.Class.Provider = MemoryProvider
			return b.Memory.DeleteMachine(ctx, &own)
		}
	}, map[string]string{"Arguments/a class of another provider is InvalidArgument": "the class was wrong"}},
	{"deletes, then looks at the provider", func(b *broken) {
		b.remove = func(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
			b.Remove(req.Machine.Spec.ProviderID)
			return b.Memory.DeleteMachine(ctx, req)
		}
	}, map[string]string{"Arguments/a class of another provider is InvalidArgument": "is gone: the class was wrong"}},
	{"takes garbage for a mistake of the user", func(b *broken) {
		b.around = func(ctx context.Context, _ codes.Call, next func(context.Context) error) error {
			err := next(ctx)
			if codes.Of(err) == codes.Internal {
				return codes.Wrap(codes.InvalidArgument, err, "this is no spec")
			}
			return err
		}
	}, map[string]string{"Arguments/a spec that can't be decoded is Internal": "answers InvalidArgument, not Internal"}},
	{"makes up what a spec lacks", func(b *broken) {
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			if codes.Of(second(decodeSpec(req.Class.ProviderSpec))) != codes.InvalidArgument {
				return b.Memory.CreateMachine(ctx, req)
			}
			own := *req
			own.Class = req.Class.Clone()
			own.Class.ProviderSpec = MemorySpec{Cluster: "blue", Size: "small"}.Encode()
			return b.Memory.CreateMachine(ctx, &own)
		}
	}, map[string]string{"Arguments/a spec that can't work is InvalidArgument": "CreateMachine answers OK"}},
	{"takes no name for all names", func(b *broken) {
		b.remove = func(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
			if req.Machine.Name == "" {
				for _, vm := range b.VMs() {
					b.Remove(vm.ID)
				}
				return &deleteResponse{}, nil
			}
			return b.Memory.DeleteMachine(ctx, req)
		}
	}, map[string]string{"Arguments/a machine without a name is InvalidArgument": "was for a machine without a name"}},
	{"numbers its complaints", func(b *broken) {
		var n atomic.Int32
		b.around = func(ctx context.Context, _ codes.Call, next func(context.Context) error) error {
			if err := next(ctx); err != nil {
				return codes.Newf(codes.Of(err), "%s (request %d)", codes.Message(err), n.Add(1))
			}
			return nil
		}
	}, map[string]string{"Arguments/a class of another provider is InvalidArgument": "a message that changes"}},
	{"fails without a word", func(b *broken) {
		b.around = func(ctx context.Context, _ codes.Call, next func(context.Context) error) error {
			if err := next(ctx); err != nil {
				return codes.New(codes.Of(err), "")
			}
			return nil
		}
	}, map[string]string{"Status/of an absent VM is NotFound": "and no message"}},
	{"changes its request", func(b *broken) {
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			if req.Machine.Labels == nil {
				req.Machine.Labels = map[string]string{}
			}
			req.Machine.Labels["created"] = "true"
			return b.Memory.CreateMachine(ctx, req)
		}
	}, map[string]string{"Create/answers what the VM is called": "changed its request"}},
	{"puts its defaults into the class", func(b *broken) {
		b.list = func(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
			req.Class.ProviderSpec = append(req.Class.ProviderSpec, ' ')
			return b.Memory.ListMachines(ctx, req)
		}
	}, map[string]string{"List/is the same again": "changed its request"}},
	{"needs a secret", func(b *broken) {
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			_ = req.Secret.Data["token"]
			return b.Memory.CreateMachine(ctx, req)
		}
	}, map[string]string{"Secrets/a missing secret ends no process": "CreateMachine panicked"}},
	{"finds nothing without its secret", func(b *broken) {
		b.status = func(ctx context.Context, req *statusRequest) (*statusResponse, error) {
			if req.Secret == nil {
				return nil, codes.New(codes.NotFound, "secret not found")
			}
			return b.Memory.GetMachineStatus(ctx, req)
		}
	}, map[string]string{"Secrets/without its secret no VM is gone": "GetMachineStatus answers"}},
	{"lists nothing without its secret", func(b *broken) {
		b.list = func(ctx context.Context, req *listRequest) (*listResponse, error) {
			if req.Secret == nil {
				return &listResponse{}, nil
			}
			return b.Memory.ListMachines(ctx, req)
		}
	}, map[string]string{"Secrets/without its secret no VM is gone": "ListMachines answers OK"}},
	{"finds nothing to delete without its secret", func(b *broken) {
		b.remove = func(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
			if req.Secret == nil {
				return nil, codes.New(codes.NotFound, "secret not found")
			}
			return b.Memory.DeleteMachine(ctx, req)
		}
	}, map[string]string{"Secrets/without its secret no VM is gone": "DeleteMachine answers"}},
	{"says OK without its secret", func(b *broken) {
		b.remove = func(ctx context.Context, req *deleteRequest) (*deleteResponse, error) {
			if req.Secret == nil {
				return &deleteResponse{}, nil
			}
			return b.Memory.DeleteMachine(ctx, req)
		}
	}, map[string]string{"Secrets/without its secret no VM is gone": "still exists"}},
	{"quotes the token", func(b *broken) {
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			a, err := b.Memory.CreateMachine(ctx, req)
			if codes.Of(err) == codes.Unauthenticated && req.Secret != nil {
				return nil, codes.Wrap(codes.Unauthenticated, fmt.Errorf("token %q", req.Secret.Data["token"]), "refused")
			}
			return a, err
		}
	}, map[string]string{"Secrets/wrong credentials are not shown": `the value of "token"`}},
	{"prints the secret's map", func(b *broken) {
		b.status = func(ctx context.Context, req *statusRequest) (*statusResponse, error) {
			a, err := b.Memory.GetMachineStatus(ctx, req)
			if codes.Of(err) == codes.NotFound {
				return nil, codes.Newf(codes.NotFound, "no VM %s for %v", req.Machine.Name, dataOf(req.Secret))
			}
			return a, err
		}
	}, map[string]string{"Status/of an absent VM is NotFound": "shows the value of"}},
	{"notes the user data", func(b *broken) {
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			a, err := b.Memory.CreateMachine(ctx, req)
			if err == nil && req.Secret != nil {
				a.LastKnownState = "booted with " + string(req.Secret.Data[machine.UserData])
			}
			return a, err
		}
	}, map[string]string{"Create/answers what the VM is called": "CreateMachine's response shows"}},
}

func second[A, B any](_ A, b B) B { return b }

func dataOf(s *machine.Secret) map[string][]byte {
	if s == nil {
		return nil
	}
	return s.Data
}
