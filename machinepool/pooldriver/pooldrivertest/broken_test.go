package pooldrivertest

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

// broken is a Memory whose calls a test can replace.
type broken struct {
	*Memory
	features machinepool.Features
	// around, if set, replaces each call below.
	around    func(ctx context.Context, call machinepool.Call, class *machine.Class, next func(context.Context) error) error
	create    func(context.Context, *pooldriver.CreatePoolRequest) (*pooldriver.Response, error)
	update    func(context.Context, *pooldriver.UpdatePoolRequest) (*pooldriver.Response, error)
	scale     func(context.Context, *pooldriver.ScalePoolRequest) (*pooldriver.Response, error)
	status    func(context.Context, *pooldriver.GetPoolStatusRequest) (*pooldriver.GetPoolStatusResponse, error)
	remove    func(context.Context, *pooldriver.DeletePoolRequest) (*pooldriver.Response, error)
	instances func(context.Context, *pooldriver.DeleteInstancesRequest) (*pooldriver.Response, error)
	replace   func(context.Context, *pooldriver.ReplaceInstanceRequest) (*pooldriver.Response, error)
	drained   func(context.Context, *pooldriver.InstancesDrainedRequest) (*pooldriver.Response, error)
	listing   func(context.Context, *pooldriver.ListPoolsRequest) (*pooldriver.ListPoolsResponse, error)
	end       <-chan struct{} // closed at the end of the test
	full      atomic.Bool     // there is no quota left
	refused   error           // the answer when there is no quota left
	left      sync.Map        // other things that groups leave behind
}

func newBroken(m *Memory) *broken {
	b := &broken{
		Memory: m, features: m.PoolFeatures(), refused: codes.New(codes.ResourceExhausted, "the quota is used up"),
		around: func(ctx context.Context, _ machinepool.Call, _ *machine.Class, next func(context.Context) error) error {
			return next(ctx)
		},
		create: m.CreatePool, update: m.UpdatePool, status: m.GetPoolStatus, remove: m.DeletePool,
		instances: m.DeleteInstances, replace: m.ReplaceInstance, drained: m.InstancesDrained, listing: m.ListPools,
	}
	b.scale = b.scaleWithin
	return b
}

func through[Q, R any](
	ctx context.Context, b *broken, call machinepool.Call, class *machine.Class, req *Q, do func(context.Context, *Q) (*R, error),
) (response *R, err error) {
	err = b.around(ctx, call, class, func(ctx context.Context) (err error) {
		response, err = do(ctx, req)
		return err
	})
	return response, err
}

// exhaust implements Setup.Exhaust.
func (b *broken) exhaust(context.Context) (restore func()) {
	b.full.Store(true)
	return func() { b.full.Store(false) }
}

// leftovers implements Setup.Leftovers.
func (b *broken) leftovers() (all []string) {
	b.left.Range(func(thing, _ any) bool {
		all = append(all, thing.(string))
		return true
	})
	return all
}

func (b *broken) PoolFeatures() machinepool.Features { return b.features }

func (b *broken) CreatePool(ctx context.Context, req *pooldriver.CreatePoolRequest) (*pooldriver.Response, error) {
	return through(ctx, b, machinepool.CreatePool, req.Class, req, b.create)
}

func (b *broken) UpdatePool(ctx context.Context, req *pooldriver.UpdatePoolRequest) (*pooldriver.Response, error) {
	return through(ctx, b, machinepool.UpdatePool, req.Class, req, b.update)
}

func (b *broken) ScalePool(ctx context.Context, req *pooldriver.ScalePoolRequest) (*pooldriver.Response, error) {
	return through(ctx, b, machinepool.ScalePool, req.Class, req, b.scale)
}

// scaleWithin scales a group as a correct driver does, within its quota.
func (b *broken) scaleWithin(ctx context.Context, req *pooldriver.ScalePoolRequest) (*pooldriver.Response, error) {
	if g := b.group(req.Request); b.full.Load() && g != nil && req.To > g.target {
		return nil, b.refused
	}
	return b.Memory.ScalePool(ctx, req)
}

func (b *broken) GetPoolStatus(ctx context.Context, req *pooldriver.GetPoolStatusRequest) (*pooldriver.GetPoolStatusResponse, error) {
	return through(ctx, b, machinepool.GetPoolStatus, req.Class, req, b.status)
}

func (b *broken) DeletePool(ctx context.Context, req *pooldriver.DeletePoolRequest) (*pooldriver.Response, error) {
	return through(ctx, b, machinepool.DeletePool, req.Class, req, b.remove)
}

func (b *broken) DeleteInstances(ctx context.Context, req *pooldriver.DeleteInstancesRequest) (*pooldriver.Response, error) {
	return through(ctx, b, machinepool.DeleteInstances, req.Class, req, b.instances)
}

func (b *broken) ReplaceInstance(ctx context.Context, req *pooldriver.ReplaceInstanceRequest) (*pooldriver.Response, error) {
	return through(ctx, b, machinepool.ReplaceInstance, req.Class, req, b.replace)
}

func (b *broken) InstancesDrained(ctx context.Context, req *pooldriver.InstancesDrainedRequest) (*pooldriver.Response, error) {
	return through(ctx, b, machinepool.InstancesDrained, req.Class, req, b.drained)
}

func (b *broken) ListPools(ctx context.Context, req *pooldriver.ListPoolsRequest) (*pooldriver.ListPoolsResponse, error) {
	return through(ctx, b, machinepool.ListPools, req.Class, req, b.listing)
}

// group returns the group that a request means. Nil: there is none.
func (b *broken) group(r pooldriver.Request) *memoryGroup {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.groups[groupKey{clusterOf(r.Class), r.Pool.Key}]
}

// clusterOf returns the cluster that a class names. Empty: its spec can't be read.
func clusterOf(c *machine.Class) string {
	spec, _ := drivertest.NewMemory(drivertest.MemoryOptions{}).Admit(c, nil)
	return spec.Cluster
}

// variant is a pool driver with one thing wrong.
type variant struct {
	name  string
	spoil func(*broken)
	// fails are checks that must fail, each with a text that its failure must contain.
	fails map[string]string
}

type answer = pooldriver.Response

// defaults replaces the spec of a class whose call is refused with that code.
func defaults(code codes.Code) func(context.Context, machinepool.Call, *machine.Class, func(context.Context) error) error {
	return func(ctx context.Context, _ machinepool.Call, class *machine.Class, next func(context.Context) error) error {
		text := class.ProviderSpec
		if _, err := drivertest.NewMemory(drivertest.MemoryOptions{}).Admit(class, nil); codes.Of(err) == code && class.Provider == drivertest.MemoryProvider {
			class.ProviderSpec = drivertest.MemorySpec{Cluster: "blue", Size: "small"}.Encode()
		}
		defer func() { class.ProviderSpec = text }()
		return next(ctx)
	}
}

var variants = []variant{
	{"makes one instance too many", func(b *broken) {
		b.create = func(ctx context.Context, req *pooldriver.CreatePoolRequest) (*answer, error) {
			more := *req
			more.Replicas++
			return b.Memory.CreatePool(ctx, &more)
		}
	}, map[string]string{
		"Create/makes the group, and its instances come": "not 3: three were asked for",
		"Create/of no instances is a group all the same": "not 0",
		"Status/changes nothing, and is the same again":  "not 2",
	}},
	{"resizes what it adopts", func(b *broken) {
		b.create = func(ctx context.Context, req *pooldriver.CreatePoolRequest) (*answer, error) {
			a, err := b.Memory.CreatePool(ctx, req)
			if err == nil {
				b.Resize(clusterOf(req.Class), req.Pool.Key, req.Replicas)
			}
			return a, err
		}
	}, map[string]string{"Create/adopts a group of any size": "a create resizes nothing"}},
	{"makes another group each time", func(b *broken) {
		n := 0
		b.create = func(ctx context.Context, req *pooldriver.CreatePoolRequest) (*answer, error) {
			a, err := b.Memory.CreatePool(ctx, req)
			if err == nil {
				b.mu.Lock()
				n++
				a.GroupID += string(rune('a' + n))
				b.mu.Unlock()
			}
			return a, err
		}
	}, map[string]string{
		"Create/is idempotent by name":                  "adopts the one that is there",
		"Concurrent/creates of one name make one group": "also when its creates race",
	}},
	{"has one group for all", func(b *broken) {
		b.create = func(ctx context.Context, req *pooldriver.CreatePoolRequest) (*answer, error) {
			a, err := b.Memory.CreatePool(ctx, req)
			if a != nil {
				a.GroupID = "the-group"
			}
			return a, err
		}
	}, map[string]string{"Create/makes one group a pool": "the same group"}},
	{"forgets groups without their ID", func(b *broken) {
		b.remove = func(ctx context.Context, req *pooldriver.DeletePoolRequest) (*answer, error) {
			if req.Pool.Status.GroupID == "" && b.group(req.Request) != nil {
				return &answer{}, nil
			}
			return b.Memory.DeletePool(ctx, req)
		}
	}, map[string]string{
		"Delete/finds the group when no ID was recorded": "DeletePool answered OK",
	}},
	{"says that absent groups are there", func(b *broken) {
		b.status = func(ctx context.Context, req *pooldriver.GetPoolStatusRequest) (*pooldriver.GetPoolStatusResponse, error) {
			a, err := b.Memory.GetPoolStatus(ctx, req)
			if codes.Of(err) == codes.NotFound {
				return &pooldriver.GetPoolStatusResponse{GroupID: "g"}, nil
			}
			return a, err
		}
	}, map[string]string{
		"Status/of an absent group is NotFound":                 "there is no group",
		"Cluster/others' groups are neither found nor changed":  "their own cluster only",
		"Delete/removes group and instances, and is idempotent": "DeletePool answered OK",
	}},
	{"replaces an instance when it is looked at", func(b *broken) {
		b.status = func(ctx context.Context, req *pooldriver.GetPoolStatusRequest) (*pooldriver.GetPoolStatusResponse, error) {
			a, err := b.Memory.GetPoolStatus(ctx, req)
			if err == nil && len(a.Instances) > 0 {
				b.Lose(a.Instances[0].ProviderID)
				b.Work()
			}
			return a, err
		}
	}, map[string]string{"Status/changes nothing, and is the same again": "at first, then"}},
	{"scales by a difference", func(b *broken) {
		b.scale = func(ctx context.Context, req *pooldriver.ScalePoolRequest) (*answer, error) {
			if g := b.group(req.Request); g != nil && req.To == g.target {
				req2 := *req
				req2.To++
				return b.Memory.ScalePool(ctx, &req2)
			}
			return b.Memory.ScalePool(ctx, req)
		}
	}, map[string]string{"Scale/brings the group to its size, and is idempotent": "repeated, it changes nothing"}},
	{"never scales to nothing", func(b *broken) {
		b.scale = func(ctx context.Context, req *pooldriver.ScalePoolRequest) (*answer, error) {
			least := *req
			least.To = max(1, req.To)
			return b.Memory.ScalePool(ctx, &least)
		}
	}, map[string]string{"Scale/to nothing and back": "that size was asked for"}},
	{"scales its neighbours too", func(b *broken) {
		b.scale = func(ctx context.Context, req *pooldriver.ScalePoolRequest) (*answer, error) {
			a, err := b.Memory.ScalePool(ctx, req)
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, g := range b.groups {
				if err == nil {
					g.target = req.To
					b.work(g)
				}
			}
			return a, err
		}
	}, map[string]string{"Scale/leaves other groups alone": "the other pool was scaled"}},
	{"makes what it is to scale", func(b *broken) {
		b.scale = func(ctx context.Context, req *pooldriver.ScalePoolRequest) (*answer, error) {
			_, _ = b.Memory.CreatePool(ctx, &pooldriver.CreatePoolRequest{Request: req.Request, Replicas: 2})
			return b.Memory.ScalePool(ctx, req)
		}
	}, map[string]string{"Scale/of an absent group is NotFound": "there is no group"}},
	{"makes what it is to update", func(b *broken) {
		b.update = func(ctx context.Context, req *pooldriver.UpdatePoolRequest) (*answer, error) {
			_, _ = b.Memory.CreatePool(ctx, &pooldriver.CreatePoolRequest{Request: req.Request, Replicas: 2})
			return b.Memory.UpdatePool(ctx, req)
		}
	}, map[string]string{"Update/of an absent group is NotFound": "there is no group"}},
	{"grows when it is updated", func(b *broken) {
		b.update = func(ctx context.Context, req *pooldriver.UpdatePoolRequest) (*answer, error) {
			a, err := b.Memory.UpdatePool(ctx, req)
			if err == nil {
				b.Resize("blue", req.Pool.Key, 5)
			}
			return a, err
		}
	}, map[string]string{"Update/keeps the size, and is idempotent": "an update leaves the size alone"}},
	{"rolls whenever it is updated", func(b *broken) {
		b.update = func(ctx context.Context, req *pooldriver.UpdatePoolRequest) (*answer, error) {
			a, err := b.Memory.UpdatePool(ctx, req)
			if g := b.group(req.Request); err == nil && g != nil {
				b.Lose(g.sorted()[0].ProviderID)
				b.Work()
			}
			return a, err
		}
	}, map[string]string{"Update/to other bounds of updates replaces nothing": "bounds of an update say nothing"}},
	{"doesn't know what it deleted", func(b *broken) {
		b.remove = func(ctx context.Context, req *pooldriver.DeletePoolRequest) (*answer, error) {
			there := b.group(req.Request) != nil
			if _, err := b.Memory.DeletePool(ctx, req); err != nil || there {
				return &answer{}, err
			}
			return nil, codes.New(codes.NotFound, "no such group")
		}
	}, map[string]string{
		"Delete/of an absent group is OK":                       "DeletePool: ",
		"Delete/removes group and instances, and is idempotent": "DeletePool: ",
		"LostAnswer/of a delete: the next one is OK":            "DeletePool: ",
	}},
	{"declares what it has not", func(b *broken) {
		b.instances = func(context.Context, *pooldriver.DeleteInstancesRequest) (*answer, error) {
			return pooldriver.UnimplementedPools{}.DeleteInstances(context.Background(), nil)
		}
	}, map[string]string{
		"Instances/what is declared is there, and nothing else": "DeleteInstances is declared: true",
		"Instances/deleted are those that were named":           "DeleteInstances: ",
	}},
	{"deletes others than were named", func(b *broken) {
		b.instances = func(ctx context.Context, req *pooldriver.DeleteInstancesRequest) (*answer, error) {
			g := b.group(req.Request)
			if g == nil {
				return b.Memory.DeleteInstances(ctx, req)
			}
			to := g.target
			for _, i := range g.sorted() {
				if slices.Contains(req.ProviderIDs, i.ProviderID) {
					to--
				}
			}
			return b.Memory.ScalePool(ctx, &pooldriver.ScalePoolRequest{Request: req.Request, To: to})
		}
	}, map[string]string{
		"Instances/deleted are those that were named": "left are",
		"Instances/deleting again takes no others":    "lower no target",
	}},
	{"lowers its size for instances that it does not have", func(b *broken) {
		b.instances = func(ctx context.Context, req *pooldriver.DeleteInstancesRequest) (*answer, error) {
			g := b.group(req.Request)
			if g == nil {
				return b.Memory.DeleteInstances(ctx, req)
			}
			_, _ = b.Memory.DeleteInstances(ctx, req)
			return b.Memory.ScalePool(ctx, &pooldriver.ScalePoolRequest{Request: req.Request, To: g.target - 1})
		}
	}, map[string]string{
		"Instances/what is declared is there, and nothing else": "the group has no such instance",
		"Instances/another group's are not deleted":             "another group's",
	}},
	{"takes instances from anywhere", func(b *broken) {
		b.instances = func(ctx context.Context, req *pooldriver.DeleteInstancesRequest) (*answer, error) {
			a, err := b.Memory.DeleteInstances(ctx, req)
			for _, id := range req.ProviderIDs {
				b.Lose(id)
				b.Work()
			}
			return a, err
		}
	}, map[string]string{"Instances/another group's are not deleted": "of another pool were"}},
	{"replaces again what is gone", func(b *broken) {
		b.replace = func(ctx context.Context, req *pooldriver.ReplaceInstanceRequest) (*answer, error) {
			if g := b.group(req.Request); g != nil && g.instances[req.ProviderID] == nil && len(g.instances) > 0 {
				b.Lose(g.sorted()[len(g.instances)-1].ProviderID)
				b.Work()
			}
			return b.Memory.ReplaceInstance(ctx, req)
		}
	}, map[string]string{"Instances/replaced is the one that was named, once": "it was gone"}},
	{"doesn't listen when it is told of drains", func(b *broken) {
		b.drained = func(context.Context, *pooldriver.InstancesDrainedRequest) (*answer, error) {
			return &answer{}, nil
		}
	}, map[string]string{"Instances/goes when the provider is told that it is empty": "still await a drain"}},
	{"removes any empty group", func(b *broken) {
		b.drained = func(ctx context.Context, req *pooldriver.InstancesDrainedRequest) (*answer, error) {
			for _, id := range req.ProviderIDs {
				b.AskDrain(id)
			}
			return b.Memory.InstancesDrained(ctx, req)
		}
	}, map[string]string{"Instances/telling of others changes nothing": "nobody wanted to remove any"}},
	{"lists what it has deleted", func(b *broken) {
		ever := map[string]object.Key{}
		b.listing = func(ctx context.Context, req *pooldriver.ListPoolsRequest) (*pooldriver.ListPoolsResponse, error) {
			a, err := b.Memory.ListPools(ctx, req)
			if err == nil {
				maps.Copy(ever, a.Groups)
				a.Groups = ever
			}
			return a, err
		}
	}, map[string]string{"List/names each group with its pool, until it is deleted": "it was deleted"}},
	{"lists in upper case", func(b *broken) {
		b.listing = func(ctx context.Context, req *pooldriver.ListPoolsRequest) (*pooldriver.ListPoolsResponse, error) {
			a, err := b.Memory.ListPools(ctx, req)
			if err == nil {
				spelled := map[string]object.Key{}
				for id, pool := range a.Groups {
					spelled[strings.ToUpper(id)] = pool
				}
				a.Groups = spelled
			}
			return a, err
		}
	}, map[string]string{"Spelling/of group IDs is one in create, status and list": "one spelling in all calls"}},
	{"spells instances otherwise each time", func(b *broken) {
		n := 0
		b.status = func(ctx context.Context, req *pooldriver.GetPoolStatusRequest) (*pooldriver.GetPoolStatusResponse, error) {
			a, err := b.Memory.GetPoolStatus(ctx, req)
			if err == nil {
				n++
				for i := range a.Instances {
					a.Instances[i].ProviderID += strings.Repeat("/", n)
				}
			}
			return a, err
		}
	}, map[string]string{"Spelling/of instance IDs is one in every answer": "one spelling in all calls"}},
	{"lists the groups of all clusters", func(b *broken) {
		b.listing = func(ctx context.Context, req *pooldriver.ListPoolsRequest) (*pooldriver.ListPoolsResponse, error) {
			a, err := b.Memory.ListPools(ctx, req)
			b.mu.Lock()
			defer b.mu.Unlock()
			for key, g := range b.groups {
				if err == nil {
					a.Groups[g.id] = key.pool
				}
			}
			return a, err
		}
	}, map[string]string{"List/does not name others' groups": "what is listed and of no pool is deleted"}},
	{"changes groups that it lists", func(b *broken) {
		b.listing = func(ctx context.Context, req *pooldriver.ListPoolsRequest) (*pooldriver.ListPoolsResponse, error) {
			a, err := b.Memory.ListPools(ctx, req)
			if err == nil {
				for _, key := range a.Groups {
					b.Resize("blue", key, 3)
				}
			}
			return a, err
		}
	}, map[string]string{
		"List/is the same again":                                 "ListPools changes nothing",
		"List/a deletion by ID spares another group of the pool": "",
	}},
	{"deletes by name, regardless of the ID", func(b *broken) {
		b.remove = func(ctx context.Context, req *pooldriver.DeletePoolRequest) (*answer, error) {
			byName := *req
			byName.Pool = req.Pool.Clone()
			byName.Pool.Status.GroupID = ""
			return b.Memory.DeletePool(ctx, &byName)
		}
	}, map[string]string{"List/a deletion by ID spares another group of the pool": "GetPoolStatus"}},
	{"lists nothing for a class that it can't read", func(b *broken) {
		b.listing = func(ctx context.Context, req *pooldriver.ListPoolsRequest) (*pooldriver.ListPoolsResponse, error) {
			a, err := b.Memory.ListPools(ctx, req)
			if codes.Of(err) == codes.Internal {
				return &pooldriver.ListPoolsResponse{}, nil
			}
			return a, err
		}
	}, map[string]string{"List/of a class that is wrong is refused": "nothing is known of a class that can't be read"}},
	{"takes any provider's class", func(b *broken) {
		b.around = func(ctx context.Context, _ machinepool.Call, class *machine.Class, next func(context.Context) error) error {
			provider := class.Provider
			class.Provider = drivertest.MemoryProvider
			defer func() { class.Provider = provider }()
			return next(ctx)
		}
	}, map[string]string{"Arguments/a class of another provider is InvalidArgument": "not InvalidArgument"}},
	{"takes what it can't read for its default", func(b *broken) {
		b.around = defaults(codes.Internal)
	}, map[string]string{
		"Arguments/a spec that can't be decoded is Internal": "not Internal",
		"List/of a class that is wrong is refused":           "not Internal",
	}},
	{"takes what can't work for its default", func(b *broken) {
		b.around = defaults(codes.InvalidArgument)
	}, map[string]string{"Arguments/a spec that can't work is InvalidArgument": "not InvalidArgument"}},
	{"takes no name for all", func(b *broken) {
		b.remove = func(ctx context.Context, req *pooldriver.DeletePoolRequest) (*answer, error) {
			if req.Pool.Name == "" {
				b.mu.Lock()
				defer b.mu.Unlock()
				clear(b.groups)
				return &answer{}, nil
			}
			return b.Memory.DeletePool(ctx, req)
		}
	}, map[string]string{"Arguments/a pool without a name is InvalidArgument": "DeletePool answers OK"}},
	{"notes its credentials", func(b *broken) {
		b.create = func(ctx context.Context, req *pooldriver.CreatePoolRequest) (*answer, error) {
			a, err := b.Memory.CreatePool(ctx, req)
			if err == nil {
				a.LastKnownState = "made with " + string(req.Secret.Data["token"])
			}
			return a, err
		}
	}, map[string]string{"Create/makes the group, and its instances come": `CreatePool's response shows the value of "token"`}},
	{"shows its credentials", func(b *broken) {
		b.scale = func(ctx context.Context, req *pooldriver.ScalePoolRequest) (*answer, error) {
			a, err := b.Memory.ScalePool(ctx, req)
			if codes.Of(err) == codes.Unauthenticated && req.Secret != nil {
				err = codes.Newf(codes.Unauthenticated, "the token %s is wrong", req.Secret.Data["token"])
			}
			return a, err
		}
	}, map[string]string{"Secrets/wrong credentials are not shown": "shows the value of"}},
	{"counts on its secret", func(b *broken) {
		b.around = func(ctx context.Context, _ machinepool.Call, _ *machine.Class, next func(context.Context) error) error {
			return next(ctx)
		}
		b.create = func(ctx context.Context, req *pooldriver.CreatePoolRequest) (*answer, error) {
			_ = req.Bootstrap.Data["userData"]
			return b.Memory.CreatePool(ctx, req)
		}
	}, map[string]string{"Secrets/a missing secret ends no process": "panicked"}},
	{"finds nothing without its secret", func(b *broken) {
		b.status = func(ctx context.Context, req *pooldriver.GetPoolStatusRequest) (*pooldriver.GetPoolStatusResponse, error) {
			if req.Secret == nil {
				return nil, codes.New(codes.NotFound, "secret not found")
			}
			return b.Memory.GetPoolStatus(ctx, req)
		}
	}, map[string]string{"Secrets/without its secret no group is gone": "GetPoolStatus answers"}},
	{"says OK without its secret", func(b *broken) {
		b.remove = func(ctx context.Context, req *pooldriver.DeletePoolRequest) (*answer, error) {
			if req.Secret == nil {
				return &answer{}, nil
			}
			return b.Memory.DeletePool(ctx, req)
		}
	}, map[string]string{"Secrets/without its secret no group is gone": "DeletePool answered OK"}},
	{"goes on after the end", func(b *broken) {
		b.around = func(ctx context.Context, _ machinepool.Call, _ *machine.Class, next func(context.Context) error) error {
			if ctx.Err() != nil {
				<-b.end
			}
			return next(ctx)
		}
	}, map[string]string{
		"Context/a canceled call ends":          "did not return within",
		"Context/a call past its deadline ends": "did not return within",
	}},
	{"takes another instance when its answer was lost", func(b *broken) {
		asked := map[string]bool{}
		b.instances = func(ctx context.Context, req *pooldriver.DeleteInstancesRequest) (*answer, error) {
			a, err := b.Memory.DeleteInstances(ctx, req)
			if g := b.group(req.Request); err == nil && g != nil && asked[req.ProviderIDs[0]] {
				b.Resize("blue", req.Pool.Key, g.target-1)
			}
			asked[req.ProviderIDs[0]] = true
			return a, err
		}
	}, map[string]string{
		"LostAnswer/of a deletion of instances: the next one takes no others": "takes no others",
		"Instances/deleting again takes no others":                            "lower no target",
	}},
	{"makes a group again when its answer was lost", func(b *broken) {
		var made sync.Map
		b.create = func(ctx context.Context, req *pooldriver.CreatePoolRequest) (*answer, error) {
			_, again := made.LoadOrStore(req.Pool.Name, true)
			a, err := b.Memory.CreatePool(ctx, req)
			if err == nil && again {
				b.Resize("blue", req.Pool.Key, 4)
			}
			return a, err
		}
	}, map[string]string{
		"Create/is idempotent by name":                "adopts the one that is there",
		"LostAnswer/of a create: the next one adopts": "adopts what it made",
	}},
	{"leaves the template of its group", func(b *broken) {
		b.create = func(ctx context.Context, req *pooldriver.CreatePoolRequest) (*answer, error) {
			a, err := b.Memory.CreatePool(ctx, req)
			if err == nil {
				b.left.Store("template of "+req.Pool.Name, true)
			}
			return a, err
		}
	}, map[string]string{"Delete/removes what was made with the group": "is left of groups that are gone"}},
	{"has no code for a quota", func(b *broken) {
		b.refused = codes.New(codes.Unavailable, "the quota is used up")
	}, map[string]string{"Quota/that is used up is ResourceExhausted, or a failure of the group": "answers Unavailable, not ResourceExhausted"}},
	{"says OK without a quota", func(b *broken) {
		b.refused = nil
	}, map[string]string{"Quota/that is used up is ResourceExhausted, or a failure of the group": "neither ScalePool nor the status says so"}},
	{"never asks again for a size", func(b *broken) {
		asked := map[object.Key]int32{}
		b.scale = func(ctx context.Context, req *pooldriver.ScalePoolRequest) (*answer, error) {
			if to, ok := asked[req.Pool.Key]; ok && to == req.To {
				return &answer{}, nil
			}
			a, err := b.scaleWithin(ctx, req)
			if codes.Of(err) == codes.ResourceExhausted {
				asked[req.Pool.Key] = req.To
			}
			return a, err
		}
	}, map[string]string{"Quota/that is raised brings the group to its size": "is asked for again"}},
	{"makes one group at a time", func(b *broken) {
		var at atomic.Int32
		b.around = func(ctx context.Context, call machinepool.Call, _ *machine.Class, next func(context.Context) error) error {
			if call != machinepool.CreatePool {
				return next(ctx)
			}
			defer at.Add(-1)
			if at.Add(1) > 1 {
				return codes.New(codes.Aborted, "another group is being made")
			}
			for range 1000 {
				runtime.Gosched()
			}
			return next(ctx)
		}
	}, map[string]string{
		"Concurrent/creates of many names make as many groups": "CreatePool beside others",
	}},
	{"fails when it is deleted twice at once", func(b *broken) {
		var at atomic.Int32
		b.around = func(ctx context.Context, call machinepool.Call, _ *machine.Class, next func(context.Context) error) error {
			if call != machinepool.DeletePool {
				return next(ctx)
			}
			defer at.Add(-1)
			if at.Add(1) > 1 {
				return codes.New(codes.Internal, "the group is in an unexpected state")
			}
			for range 1000 {
				runtime.Gosched()
			}
			return next(ctx)
		}
	}, map[string]string{"Concurrent/deletes of one group all end": "to one of several calls"}},
	{"remembers what it has made", func(b *broken) {
		made := map[object.Key]bool{}
		b.create = func(ctx context.Context, req *pooldriver.CreatePoolRequest) (*answer, error) {
			a, err := b.Memory.CreatePool(ctx, req)
			if err == nil {
				b.mu.Lock()
				made[req.Pool.Key] = true
				b.mu.Unlock()
			}
			return a, err
		}
		b.scale = func(ctx context.Context, req *pooldriver.ScalePoolRequest) (*answer, error) {
			if !made[req.Pool.Key] && b.group(req.Request) != nil {
				return nil, codes.New(codes.NotFound, "no such group")
			}
			return b.Memory.ScalePool(ctx, req)
		}
		b.remove = func(ctx context.Context, req *pooldriver.DeletePoolRequest) (*answer, error) {
			b.mu.Lock()
			known := made[req.Pool.Key]
			b.mu.Unlock()
			if !known && b.group(req.Request) != nil {
				return &answer{}, nil
			}
			return b.Memory.DeletePool(ctx, req)
		}
	}, map[string]string{"Processes/a second one finds, resizes, adopts and deletes what the first made": "ScalePool: "}},
}
