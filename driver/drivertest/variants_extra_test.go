package drivertest

import (
	"context"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
)

type (
	updateRequest   = driver.UpdateMachineRequest
	updateResponse  = driver.UpdateMachineResponse
	volumesRequest  = driver.GetVolumeIDsRequest
	volumesResponse = driver.GetVolumeIDsResponse
	migrateRequest  = driver.GenerateMachineClassForMigrationRequest
	migrateResponse = driver.GenerateMachineClassForMigrationResponse
)

var extraVariants = []variant{
	{"declares an update that it doesn't have", func(b *broken) {
		b.update = driver.Unimplemented{}.UpdateMachine
	}, map[string]string{"Update/is there where fields are updatable": "has no UpdateMachine"}},
	{"updates what differs only", func(b *broken) {
		b.update = func(ctx context.Context, req *updateRequest) (*updateResponse, error) {
			if string(req.LastApplied) == string(req.Wanted) {
				return nil, codes.New(codes.InvalidArgument, "there is nothing to change")
			}
			return b.Memory.UpdateMachine(ctx, req)
		}
	}, map[string]string{"Update/to the same spec is OK": "nothing to change"}},
	{"updates once", func(b *broken) {
		b.update = func(ctx context.Context, req *updateRequest) (*updateResponse, error) {
			if b.seen(req.Machine.Name + string(req.Wanted)) {
				return nil, codes.New(codes.PreconditionFailed, "it is so already")
			}
			return b.Memory.UpdateMachine(ctx, req)
		}
	}, map[string]string{"Update/is idempotent": "it is so already"}},
	{"updates forward only", func(b *broken) {
		b.update = func(ctx context.Context, req *updateRequest) (*updateResponse, error) {
			if len(spec(req.Wanted).Tags) == 0 && string(req.LastApplied) != string(req.Wanted) {
				return nil, codes.New(codes.PreconditionFailed, "there is no way back")
			}
			return b.Memory.UpdateMachine(ctx, req)
		}
	}, map[string]string{"Update/can be taken back": "there is no way back"}},
	{"updates nothing after a lost answer", func(b *broken) {
		b.failAfter = func(call codes.Call, err error) {
			b.seen("lost " + call.String())
			b.Memory.FailAfter(call, err)
		}
		b.update = func(ctx context.Context, req *updateRequest) (*updateResponse, error) {
			if _, lost := b.asked.Load("lost " + codes.UpdateMachine.String()); lost && b.seen("update after") {
				return nil, codes.New(codes.Aborted, "an update is under way already")
			}
			return b.Memory.UpdateMachine(ctx, req)
		}
	}, map[string]string{"Update/whose answer was lost is repeated, or taken back": "under way already"}},
	{"updates by the letter", func(b *broken) {
		b.update = func(ctx context.Context, req *updateRequest) (*updateResponse, error) {
			if last := string(spec(req.LastApplied).Encode()); last != string(req.LastApplied) {
				return nil, codes.New(codes.InvalidArgument, "that was never applied")
			}
			return b.Memory.UpdateMachine(ctx, req)
		}
	}, map[string]string{"Update/with a note in another spelling is OK": "never applied"}},
	{"updates by replacement", func(b *broken) {
		b.update = func(ctx context.Context, req *updateRequest) (*updateResponse, error) {
			a, err := b.Memory.UpdateMachine(ctx, req)
			if s := spec(req.Wanted); err == nil && b.Remove(req.Machine.Spec.ProviderID) {
				b.Add(MemoryVM{Name: req.Machine.Name, Cluster: s.Cluster, Size: s.Size, Initialized: true})
			}
			return a, err
		}
	}, map[string]string{"Update/to the same spec is OK": "replaces no VM"}},
	{"updates nothing", func(b *broken) {
		b.update = func(context.Context, *updateRequest) (*updateResponse, error) { return &updateResponse{}, nil }
	}, map[string]string{"Update/of an absent VM is NotFound": "answers OK"}},
	{"stumbles over strange volumes", func(b *broken) {
		b.volumes = func(ctx context.Context, req *volumesRequest) (*volumesResponse, error) {
			for _, v := range req.Volumes {
				if v.Type != MemoryVolumes {
					return nil, codes.Newf(codes.InvalidArgument, "volumes of type %q are not known", v.Type)
				}
			}
			return b.Memory.GetVolumeIDs(ctx, req)
		}
	}, map[string]string{
		"Volumes/of types it does not know are left out": "are not known",
		"Volumes/it knows are named":                     "are not known",
	}},
	{"knows no volume", func(b *broken) {
		b.volumes = func(context.Context, *volumesRequest) (*volumesResponse, error) { return &volumesResponse{}, nil }
	}, map[string]string{"Volumes/it knows are named": `not ["disk-1"]`}},
	{"takes strange volumes for its own", func(b *broken) {
		b.volumes = func(_ context.Context, req *volumesRequest) (*volumesResponse, error) {
			a := &volumesResponse{}
			for _, v := range req.Volumes {
				a.VolumeIDs = append(a.VolumeIDs, v.Handle)
			}
			return a, nil
		}
	}, map[string]string{"Volumes/of types it does not know are left out": "does not know"}},
	{"migrates anything", func(b *broken) {
		b.migrate = func(context.Context, *migrateRequest) (*migrateResponse, error) { return &migrateResponse{}, nil }
	}, map[string]string{
		"Migration/of a kind it does not know is refused": "a kind that can't be known",
		"Migration/fills the class, and is idempotent":    "left the class as it was",
	}},
	{"migrates into a blank class only", func(b *broken) {
		b.migrate = func(ctx context.Context, req *migrateRequest) (*migrateResponse, error) {
			if req.Class.Provider != "" {
				return nil, codes.New(codes.Internal, "the class is in use")
			}
			return b.Memory.GenerateMachineClassForMigration(ctx, req)
		}
	}, map[string]string{"Migration/fills the class, and is idempotent": "the class is in use"}},
	{"can't migrate", func(b *broken) {
		b.migrate = func(context.Context, *migrateRequest) (*migrateResponse, error) {
			return nil, codes.New(codes.Internal, "the class can't be converted")
		}
	}, map[string]string{"Migration/fills the class, and is idempotent": "can't be converted"}},
	{"migrates again and again", func(b *broken) {
		b.migrate = func(ctx context.Context, req *migrateRequest) (*migrateResponse, error) {
			before := string(req.Class.ProviderSpec)
			a, err := b.Memory.GenerateMachineClassForMigration(ctx, req)
			req.Class.ProviderSpec = append(req.Class.ProviderSpec, before...)
			return a, err
		}
	}, map[string]string{"Migration/fills the class, and is idempotent": "filled itself"}},
}

var contextVariants = []variant{
	{"goes on when nobody waits", func(b *broken) {
		b.around = func(ctx context.Context, _ codes.Call, next func(context.Context) error) error {
			if ctx.Err() != nil {
				<-b.end
			}
			return next(ctx)
		}
	}, map[string]string{
		"Context/a canceled call ends":          "did not return within",
		"Context/a call past its deadline ends": "did not return within",
	}},
	{"takes the end of its context for a fault of its own", func(b *broken) {
		b.around = func(ctx context.Context, _ codes.Call, next func(context.Context) error) error {
			if err := next(ctx); codes.Of(err) != codes.Canceled && codes.Of(err) != codes.DeadlineExceeded {
				return err
			}
			return codes.New(codes.Internal, "the connection broke")
		}
	}, map[string]string{
		"Context/a canceled call ends":                "CreateMachine answers Internal when its context is over",
		"Context/a call past its deadline ends":       "ListMachines answers Internal when its context is over",
		"Context/a create is cut off by its deadline": "CreateMachine answers Internal",
	}},
	{"promises a VM to those who leave", func(b *broken) {
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			if ctx.Err() != nil {
				return &createResponse{ProviderID: "memory:///blue/soon", NodeName: req.Machine.Name}, nil
			}
			return b.Memory.CreateMachine(ctx, req)
		}
	}, map[string]string{"Context/a canceled call ends": "CreateMachine answered OK"}},
	{"leaves half a VM behind", func(b *broken) {
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			if ctx.Err() != nil {
				s := spec(req.Class.ProviderSpec)
				b.Add(MemoryVM{Name: req.Machine.Name, Cluster: s.Cluster, Size: "half of " + s.Size})
			}
			return b.Memory.CreateMachine(ctx, req)
		}
	}, map[string]string{
		"Context/a canceled call ends":                "AlreadyExists",
		"Context/a create is cut off by its deadline": "AlreadyExists",
	}},
}

var lostAnswerVariants = []variant{
	{"refuses what it made itself", func(b *broken) {
		b.create = func(ctx context.Context, req *createRequest) (*createResponse, error) {
			if len(b.existing(req.Machine.Name, spec(req.Class.ProviderSpec))) > 0 {
				return nil, codes.New(codes.AlreadyExists, "a VM of this name exists")
			}
			return b.Memory.CreateMachine(ctx, req)
		}
	}, map[string]string{
		"LostAnswer/of a create: the next one adopts": "AlreadyExists",
		"Create/is idempotent by name":                "AlreadyExists",
		"Concurrent/creates of one name make one VM":  "AlreadyExists",
	}},
	{"loses the call and not the answer", func(b *broken) {
		b.failAfter = b.Memory.FailNext
	}, map[string]string{"LostAnswer/of a create: the next one adopts": "the lost create took effect"}},
	{"loses nothing", func(b *broken) {
		b.failAfter = func(codes.Call, error) {}
	}, map[string]string{
		"LostAnswer/of a create: the next one adopts":         "did not make CreateMachine fail",
		"LostAnswer/of a create: the VM can be deleted":       "did not make CreateMachine fail",
		"LostAnswer/of a delete: the next one is OK":          "did not make DeleteMachine fail",
		"LostAnswer/of an initialization: the next one is OK": "did not make InitializeMachine fail",
	}},
}
