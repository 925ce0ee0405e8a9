package restcloud

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Provider is the provider of the classes that a Driver knows.
const Provider = "rest"

// Bug is a mistake of a Driver. The zero value is no mistake.
type Bug string

// These are the mistakes.
const (
	Panics         Bug = "panics"
	CreatesAgain   Bug = "create is not idempotent"
	DoesNotWait    Bug = "delete does not wait"
	SwallowsErrors Bug = "delete swallows errors"
	ListsFirstPage Bug = "list misses VMs"
	QuotaCode      Bug = "wrong code on quota"
	IgnoresContext Bug = "ignores its context"
	LeaksDisk      Bug = "leaks a disk on partial failure"
	DeletesNothing Bug = "delete is OK and deletes nothing"
	WrongName      Bug = "creates under a wrong name"
	NeedsID        Bug = "delete without an ID is OK and deletes nothing"
	NothingFound   Bug = "every failed look-up is NotFound"
)

// Bugs returns all mistakes.
func Bugs() []Bug {
	return []Bug{
		Panics, CreatesAgain, DoesNotWait, SwallowsErrors, ListsFirstPage, QuotaCode, IgnoresContext, LeaksDisk,
		DeletesNothing, WrongName, NeedsID, NothingFound,
	}
}

// Driver creates the VMs of machines in a Cloud. It keeps the contract of driver.Driver, unless it has a
// Bug.
type Driver struct {
	driver.Unimplemented
	// Client makes the requests. Nil: http.DefaultClient.
	Client *http.Client
	// URL is the address of the Cloud.
	URL string
	// Sleep waits between two reads of a server, and returns early if its context ends. Nil: it waits in
	// real time.
	Sleep func(context.Context, time.Duration) error
	Bug   Bug
}

type spec struct{ Size, Zone string }

// Class returns a class that a Driver knows, for servers of a size.
func Class(key object.Key, size string) *machine.Class {
	text, _ := json.Marshal(spec{Size: size, Zone: "blue"})
	return &machine.Class{Meta: object.Meta{Key: key}, Provider: Provider, ProviderSpec: text}
}

func specOf(c *machine.Class) (s spec, err error) {
	if c.Provider != Provider {
		return s, codes.Newf(codes.InvalidArgument, "the class is for provider %q, not %q", c.Provider, Provider)
	}
	if err := json.Unmarshal(c.ProviderSpec, &s); err != nil {
		return s, codes.Wrap(codes.Internal, err, "the provider spec can't be decoded")
	}
	if s.Size == "" || s.Zone == "" {
		return s, codes.New(codes.InvalidArgument, "the provider spec needs a size and a zone")
	}
	return s, nil
}

// request makes one request. token may be empty.
func (d *Driver) request(ctx context.Context, method, path, token string, in any) (a answer, err error) {
	if d.Bug == IgnoresContext {
		ctx = context.WithoutCancel(ctx)
	}
	body, err := json.Marshal(in)
	if err != nil {
		return a, codes.Wrap(codes.Internal, err, "the request can't be encoded")
	}
	q, err := http.NewRequestWithContext(ctx, method, d.URL+path, bytes.NewReader(body))
	if err != nil {
		return a, codes.Wrap(codes.Internal, err, "the request can't be made")
	}
	if token != "" && d.Bug != CreatesAgain {
		q.Header.Set("Token", token)
	}
	client := d.Client
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(q)
	if err != nil {
		return a, failed(ctx, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return a, failed(ctx, err)
	}
	return a, d.read(response.StatusCode, text, &a)
}

// failed returns the error for a request that got no answer.
func failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return codes.Wrap(codes.Of(ctx.Err()), ctx.Err(), "the request was given up")
	}
	return codes.Wrap(codes.Unavailable, err, "the provider can't be reached")
}

// read decodes an answer, or returns the error for its status.
func (d *Driver) read(status int, text []byte, a *answer) error {
	switch status {
	case http.StatusOK, http.StatusCreated:
		if err := json.Unmarshal(text, a); err != nil {
			return codes.Wrap(codes.Unavailable, err, "the provider's answer was cut off")
		}
		return nil
	case http.StatusNotFound:
		return codes.New(codes.NotFound, "the provider has no such thing")
	case http.StatusForbidden:
		if d.Bug == QuotaCode {
			return codes.New(codes.Unavailable, "the provider refuses to make a server")
		}
		return codes.New(codes.ResourceExhausted, "the quota of servers is used up")
	case http.StatusTooManyRequests:
		return codes.New(codes.ResourceExhausted, "too many requests")
	}
	return codes.Newf(codes.Unavailable, "the provider answered %d", status)
}

// servers lists the servers of a zone, or those of them with a name, unless name is empty.
func (d *Driver) servers(ctx context.Context, s spec, name string) (all []Server, err error) {
	for page := 0; ; {
		query := url.Values{"zone": {s.Zone}, "page": {strconv.Itoa(page)}, "name": {name}}
		a, err := d.request(ctx, http.MethodGet, "/servers?"+query.Encode(), "", nil)
		if err != nil {
			return nil, err
		}
		all = append(all, a.Servers...)
		if a.Next == 0 || d.Bug == ListsFirstPage {
			return all, nil
		}
		page = a.Next
	}
}

func (s *Server) providerID() string { return "rest:///" + s.Zone + "/" + s.ID }

// find returns the servers of a machine: the one with its provider ID or, if it has none, those with its
// name.
func (d *Driver) find(ctx context.Context, s spec, m *machine.Machine) ([]Server, error) {
	if m.Name == "" {
		return nil, codes.New(codes.InvalidArgument, "the machine has no name")
	}
	if m.Spec.ProviderID == "" {
		all, err := d.servers(ctx, s, m.Name)
		return all, err
	}
	id, ok := strings.CutPrefix(m.Spec.ProviderID, "rest:///"+s.Zone+"/")
	if !ok {
		return nil, nil
	}
	a, err := d.request(ctx, http.MethodGet, "/servers/"+id, "", nil)
	switch {
	case codes.Of(err) == codes.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	case a.Server == nil:
		return nil, codes.New(codes.Unavailable, "the provider's answer has no server")
	}
	return []Server{*a.Server}, nil
}

// ours returns the servers that are not marked with the UID of another machine. If the machine has a
// provider ID, these are all.
func ours(all []Server, m *machine.Machine) (found []Server) {
	for _, v := range all {
		if m.Spec.ProviderID != "" || v.UID == "" || m.UID == "" || v.UID == m.UID {
			found = append(found, v)
		}
	}
	return found
}

// pause waits before the next read of a server.
func (d *Driver) pause(ctx context.Context) error {
	const between = 5 * time.Second
	var err error
	if d.Sleep != nil {
		err = d.Sleep(ctx, between)
	} else {
		timer := time.NewTimer(between)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if d.Bug == IgnoresContext {
		return nil
	}
	return err
}

// CreateMachine implements driver.Driver.
func (d *Driver) CreateMachine(ctx context.Context, q *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	s, err := specOf(q.Class)
	if err != nil {
		return nil, err
	}
	found, err := d.find(ctx, s, &machine.Machine{Meta: q.Machine.Meta})
	if err != nil {
		return nil, err
	}
	if d.Bug == Panics {
		panic("no size " + s.Size)
	}
	var v Server
	if len(found) > 0 && d.Bug != CreatesAgain {
		v = found[0]
	} else if v, err = d.make(ctx, q.Machine, s); err != nil {
		return nil, err
	}
	switch {
	case v.State == "ending":
		return nil, codes.New(codes.Aborted, "the VM of this name is being deleted")
	case v.Size != s.Size:
		return nil, codes.Newf(codes.AlreadyExists, "the VM of machine %s is %s, not %s", v.Name, v.Size, s.Size)
	}
	if v.UID != q.Machine.UID {
		if _, err := d.request(ctx, http.MethodPatch, "/servers/"+v.ID, "", map[string]string{"UID": q.Machine.UID}); err != nil {
			return nil, err
		}
	}
	for v.State != "running" {
		if err := d.pause(ctx); err != nil {
			return nil, err
		}
		now, err := d.request(ctx, http.MethodGet, "/servers/"+v.ID, "", nil)
		if err != nil {
			return nil, err
		}
		v = *now.Server
	}
	return &driver.CreateMachineResponse{ProviderID: v.providerID(), NodeName: q.Machine.Name}, nil
}

// make creates a disk, and a server that boots from it.
func (d *Driver) make(ctx context.Context, m *machine.Machine, s spec) (v Server, err error) {
	name := s.Zone + "/" + m.Name
	token := name + "/disk"
	if d.Bug == LeaksDisk {
		token = ""
	}
	disk, err := d.request(ctx, http.MethodPost, "/disks", token, Disk{Name: name})
	if err != nil {
		return v, err
	}
	v = Server{Name: m.Name, UID: m.UID, Size: s.Size, Zone: s.Zone, Disk: disk.Disk.ID}
	if d.Bug == WrongName {
		v.Name = "vm-" + m.Name
	}
	made, err := d.request(ctx, http.MethodPost, "/servers", name, v)
	if err != nil {
		return v, err
	}
	return *made.Server, nil
}

// DeleteMachine implements driver.Driver.
func (d *Driver) DeleteMachine(ctx context.Context, q *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	s, err := specOf(q.Class)
	if err != nil {
		return nil, err
	}
	if d.Bug == DeletesNothing || d.Bug == NeedsID && q.Machine.Spec.ProviderID == "" {
		return &driver.DeleteMachineResponse{}, nil
	}
	var disks []string
	for {
		found, err := d.find(ctx, s, q.Machine)
		if err != nil {
			return nil, err
		}
		found = ours(found, q.Machine)
		if len(found) == 0 {
			return &driver.DeleteMachineResponse{}, d.removeDisks(ctx, s, q.Machine, disks)
		}
		for _, v := range found {
			disks = append(disks, v.Disk)
			_, err := d.request(ctx, http.MethodDelete, "/servers/"+v.ID, "", nil)
			if err != nil && codes.Of(err) != codes.NotFound && d.Bug != SwallowsErrors {
				return nil, err
			}
		}
		switch d.Bug {
		case DoesNotWait:
			return &driver.DeleteMachineResponse{}, d.removeDisks(ctx, s, q.Machine, disks)
		case SwallowsErrors:
			_ = d.pause(ctx)
			_ = d.pause(ctx)
			return &driver.DeleteMachineResponse{}, d.removeDisks(ctx, s, q.Machine, disks)
		}
		if err := d.pause(ctx); err != nil {
			return nil, err
		}
	}
}

// removeDisks removes the given disks, and the disks with the machine's name that no server uses.
func (d *Driver) removeDisks(ctx context.Context, s spec, m *machine.Machine, ids []string) error {
	if d.Bug != LeaksDisk {
		named, err := d.request(ctx, http.MethodGet, "/disks?"+url.Values{"name": {s.Zone + "/" + m.Name}}.Encode(), "", nil)
		if err != nil {
			return err
		}
		used := map[string]bool{}
		alive, err := d.servers(ctx, s, m.Name)
		if err != nil {
			return err
		}
		for _, v := range alive {
			used[v.Disk] = true
		}
		for _, disk := range named.Disks {
			if !used[disk.ID] {
				ids = append(ids, disk.ID)
			}
		}
	}
	for _, id := range ids {
		if _, err := d.request(ctx, http.MethodDelete, "/disks/"+id, "", nil); err != nil && codes.Of(err) != codes.NotFound {
			return err
		}
	}
	return nil
}

// GetMachineStatus implements driver.Driver.
func (d *Driver) GetMachineStatus(ctx context.Context, q *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	s, err := specOf(q.Class)
	if err != nil {
		return nil, err
	}
	found, err := d.find(ctx, s, q.Machine)
	found = ours(found, q.Machine)
	switch {
	case err != nil && d.Bug != NothingFound:
		return nil, err
	case len(found) == 0:
		return nil, codes.New(codes.NotFound, "there is no VM of machine "+q.Machine.Name)
	case len(found) > 1:
		return nil, codes.Newf(codes.OutOfRange, "there are %d VMs of machine %s", len(found), q.Machine.Name)
	}
	return &driver.GetMachineStatusResponse{ProviderID: found[0].providerID(), NodeName: q.Machine.Name}, nil
}

// ListMachines implements driver.Driver.
func (d *Driver) ListMachines(ctx context.Context, q *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	s, err := specOf(q.Class)
	if err != nil {
		return nil, err
	}
	all, err := d.servers(ctx, s, "")
	if err != nil {
		return nil, err
	}
	out := &driver.ListMachinesResponse{Machines: make(map[string]string, len(all))}
	for _, v := range all {
		out.Machines[v.providerID()] = v.Name
	}
	return out, nil
}
