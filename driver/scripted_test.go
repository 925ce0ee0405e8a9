package driver_test

import (
	"context"
	"reflect"
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// scripted is a driver that answers each call by the function answer.
type scripted struct {
	// answer returns a pointer to the call's response type, or nil, and an error.
	answer func(ctx context.Context, call codes.Call, req any) (any, error)
}

func answerOf[R any](ctx context.Context, s *scripted, call codes.Call, req any) (*R, error) {
	response, err := s.answer(ctx, call, req)
	typed, _ := response.(*R)
	return typed, err
}

func (s *scripted) CreateMachine(
	ctx context.Context, req *driver.CreateMachineRequest,
) (*driver.CreateMachineResponse, error) {
	return answerOf[driver.CreateMachineResponse](ctx, s, codes.CreateMachine, req)
}

func (s *scripted) InitializeMachine(
	ctx context.Context, req *driver.InitializeMachineRequest,
) (*driver.InitializeMachineResponse, error) {
	return answerOf[driver.InitializeMachineResponse](ctx, s, codes.InitializeMachine, req)
}

func (s *scripted) DeleteMachine(
	ctx context.Context, req *driver.DeleteMachineRequest,
) (*driver.DeleteMachineResponse, error) {
	return answerOf[driver.DeleteMachineResponse](ctx, s, codes.DeleteMachine, req)
}

func (s *scripted) GetMachineStatus(
	ctx context.Context, req *driver.GetMachineStatusRequest,
) (*driver.GetMachineStatusResponse, error) {
	return answerOf[driver.GetMachineStatusResponse](ctx, s, codes.GetMachineStatus, req)
}

func (s *scripted) ListMachines(
	ctx context.Context, req *driver.ListMachinesRequest,
) (*driver.ListMachinesResponse, error) {
	return answerOf[driver.ListMachinesResponse](ctx, s, codes.ListMachines, req)
}

func (s *scripted) GetVolumeIDs(
	ctx context.Context, req *driver.GetVolumeIDsRequest,
) (*driver.GetVolumeIDsResponse, error) {
	return answerOf[driver.GetVolumeIDsResponse](ctx, s, codes.GetVolumeIDs, req)
}

func (s *scripted) GenerateMachineClassForMigration(
	ctx context.Context, req *driver.GenerateMachineClassForMigrationRequest,
) (*driver.GenerateMachineClassForMigrationResponse, error) {
	call := codes.GenerateMachineClassForMigration
	return answerOf[driver.GenerateMachineClassForMigrationResponse](ctx, s, call, req)
}

func (s *scripted) UpdateMachine(
	ctx context.Context, req *driver.UpdateMachineRequest,
) (*driver.UpdateMachineResponse, error) {
	return answerOf[driver.UpdateMachineResponse](ctx, s, codes.UpdateMachine, req)
}

var (
	aMachine = &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "m-1"}}}
	aClass   = &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "small"}}}
	aSecret  = &machine.Secret{
		Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "boot"}},
		Data: map[string][]byte{"token": []byte("hush-hush"), machine.UserData: []byte("join --with hush-hush")},
	}
)

// ask makes a call about a machine. A nil response comes back as nil, for any type.
func ask(
	ctx context.Context, d driver.Driver, call codes.Call, m *machine.Machine, c *machine.Class, s *machine.Secret,
) (any, error) {
	var response any
	var err error
	switch call {
	case codes.CreateMachine:
		response, err = d.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: m, Class: c, Secret: s})
	case codes.InitializeMachine:
		response, err = d.InitializeMachine(ctx, &driver.InitializeMachineRequest{Machine: m, Class: c, Secret: s})
	case codes.DeleteMachine:
		response, err = d.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: m, Class: c, Secret: s})
	case codes.GetMachineStatus:
		response, err = d.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: m, Class: c, Secret: s})
	case codes.ListMachines:
		response, err = d.ListMachines(ctx, &driver.ListMachinesRequest{Class: c, Secret: s})
	case codes.GetVolumeIDs:
		response, err = d.GetVolumeIDs(ctx, &driver.GetVolumeIDsRequest{})
	case codes.GenerateMachineClassForMigration:
		req := &driver.GenerateMachineClassForMigrationRequest{Class: c}
		response, err = d.GenerateMachineClassForMigration(ctx, req)
	case codes.UpdateMachine:
		response, err = d.UpdateMachine(ctx, &driver.UpdateMachineRequest{Machine: m, Class: c, Secret: s})
	}
	if v := reflect.ValueOf(response); v.IsNil() {
		response = nil
	}
	return response, err
}

// askNil makes a call without a request.
func askNil(ctx context.Context, d driver.Driver, call codes.Call) error {
	method := reflect.ValueOf(d).MethodByName(call.String())
	out := method.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.Zero(method.Type().In(1))})
	err, _ := out[1].Interface().(error)
	return err
}

// whole returns a response to call with nothing missing.
func whole(call codes.Call) any {
	switch call {
	case codes.CreateMachine:
		return &driver.CreateMachineResponse{ProviderID: "id-1", NodeName: "n-1", LastKnownState: "made"}
	case codes.InitializeMachine:
		return &driver.InitializeMachineResponse{ProviderID: "id-1"}
	case codes.DeleteMachine:
		return &driver.DeleteMachineResponse{LastKnownState: "deleted"}
	case codes.GetMachineStatus:
		return &driver.GetMachineStatusResponse{ProviderID: "id-1", NodeName: "n-1"}
	case codes.ListMachines:
		return &driver.ListMachinesResponse{Machines: map[string]string{"id-1": "m-1"}}
	case codes.GetVolumeIDs:
		return &driver.GetVolumeIDsResponse{VolumeIDs: []string{"disk-1"}}
	case codes.GenerateMachineClassForMigration:
		return &driver.GenerateMachineClassForMigrationResponse{}
	case codes.UpdateMachine:
		return &driver.UpdateMachineResponse{LastKnownState: "updated"}
	}
	return nil
}

// infoOf returns what interceptors learn about a call of ask.
func infoOf(call codes.Call) driver.CallInfo {
	info := driver.CallInfo{Method: call, Kind: "machine", Object: aMachine.Key, Class: aClass.Key}
	if slices.Contains([]codes.Call{codes.ListMachines, codes.GetVolumeIDs, codes.GenerateMachineClassForMigration}, call) {
		info.Object, info.ReadOnly = object.Key{}, true
	}
	info.ReadOnly = info.ReadOnly || call == codes.GetMachineStatus
	if call == codes.GetVolumeIDs {
		info.Class = object.Key{}
	}
	return info
}

// answering returns a driver with one answer to everything.
func answering(response func(codes.Call) any, err error) *scripted {
	return &scripted{answer: func(_ context.Context, call codes.Call, _ any) (any, error) {
		return response(call), err
	}}
}

func nothing(codes.Call) any { return nil }
