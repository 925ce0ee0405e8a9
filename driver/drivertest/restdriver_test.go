package drivertest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
)

const restProvider = "rest"

// restDriver is the driver of a restCloud: without a bug it meets every duty. bug switches on one of
// the restBugs.
type restDriver struct {
	driver.Unimplemented
	url    string
	client *http.Client
	bug    string

	one  sync.Mutex      // of bugMutex
	made map[string]bool // of bugRemembers: the names it has made VMs of
}

// Bugs of a restDriver.
const (
	bugPanics        = "panics in a create"
	bugDeletePanics  = "panics in a delete"
	bugListPanics    = "panics in a list"
	bugStatusPanics  = "panics in a look-up"
	bugCreatesAgain  = "creates again"
	bugDoesNotWait   = "does not wait for a delete"
	bugSwallows      = "swallows the error of a delete"
	bugFirstPage     = "lists the first page"
	bugQuotaCode     = "calls a quota unavailable"
	bugIgnoresCtx    = "ignores its context"
	bugLeaksDisk     = "makes another disk after a failure"
	bugLeavesDisk    = "leaves the disk of a deleted VM"
	bugMutex         = "keeps names apart by a mutex"
	bugRemembers     = "knows the VMs that it made itself"
	bugListsIDs      = "lists IDs in another case"
	bugListsNames    = "lists names with a prefix"
	bugStatusIDs     = "looks up IDs without their scheme"
	bugNothingFound  = "takes a failed look-up for an absent VM"
	bugShortenedList = "takes a failed page for the last one"
)

type restSpec struct{ Size, Zone string }

func (d *restDriver) spec(c *machine.Class) (s restSpec, err error) {
	if c.Provider != restProvider {
		return s, codes.Newf(codes.InvalidArgument, "the class is for provider %q", c.Provider)
	}
	if err := json.Unmarshal(c.ProviderSpec, &s); err != nil {
		return s, codes.Wrap(codes.Internal, err, "the provider spec can't be decoded")
	}
	if s.Size != "small" && s.Size != "large" || s.Zone == "" {
		return s, codes.Newf(codes.InvalidArgument, "there is no size %q in zone %q", s.Size, s.Zone)
	}
	return s, nil
}

// request makes one request. token may be empty.
func (d *restDriver) request(ctx context.Context, method, path, token string, in any) (a restAnswer, err error) {
	if d.bug == bugIgnoresCtx {
		ctx = context.WithoutCancel(ctx)
	}
	body, err := json.Marshal(in)
	if err != nil {
		return a, codes.Wrap(codes.Internal, err, "the request can't be encoded")
	}
	q, err := http.NewRequestWithContext(ctx, method, d.url+path, bytes.NewReader(body))
	if err != nil {
		return a, codes.Wrap(codes.Internal, err, "the request can't be made")
	}
	q.Header.Set("Token", token)
	response, err := d.client.Do(q)
	if err != nil {
		return a, d.failed(ctx, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return a, d.failed(ctx, err)
	}
	_ = json.Unmarshal(text, &a)
	switch response.StatusCode {
	case http.StatusOK, http.StatusCreated:
		return a, nil
	case http.StatusNotFound:
		return a, codes.New(codes.NotFound, "there is no such thing")
	case http.StatusForbidden:
		if d.bug == bugQuotaCode {
			return a, codes.New(codes.Unavailable, a.Error)
		}
		return a, codes.New(codes.ResourceExhausted, a.Error)
	}
	return a, codes.Newf(codes.Unavailable, "the provider answered %d", response.StatusCode)
}

// failed says why a request got no answer.
func (d *restDriver) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return codes.Wrap(codes.Of(ctx.Err()), ctx.Err(), "the request was given up")
	}
	return codes.Wrap(codes.Unavailable, err, "the provider can't be reached")
}

func (d *restDriver) servers(ctx context.Context, s restSpec, name string, first bool) (all []restServer, err error) {
	for page := 0; ; {
		query := url.Values{"zone": {s.Zone}, "page": {strconv.Itoa(page)}, "name": {name}}
		a, err := d.request(ctx, http.MethodGet, "/servers?"+query.Encode(), "", nil)
		if err != nil {
			if d.bug == bugShortenedList && page > 0 {
				return all, nil
			}
			return nil, err
		}
		all = append(all, a.Servers...)
		if a.Next == 0 || first {
			return all, nil
		}
		page = a.Next
	}
}

func (s restServer) providerID() string { return "rest:///" + s.Zone + "/" + s.ID }

// find returns the servers of a machine. adopt: also those marked with another UID.
func (d *restDriver) find(
	ctx context.Context, c *machine.Class, m *machine.Machine, adopt bool,
) (s restSpec, found []restServer, err error) {
	if s, err = d.spec(c); err != nil {
		return s, nil, err
	}
	if m.Name == "" {
		return s, nil, codes.New(codes.InvalidArgument, "the machine has no name")
	}
	if id := m.Spec.ProviderID; id != "" {
		own, ok := strings.CutPrefix(id, "rest:///"+s.Zone+"/")
		if !ok {
			return s, nil, nil
		}
		a, err := d.request(ctx, http.MethodGet, "/servers/"+own, "", nil)
		switch {
		case codes.Of(err) == codes.NotFound:
			return s, nil, nil
		case err != nil:
			return s, nil, err
		}
		return s, []restServer{*a.Server}, nil
	}
	all, err := d.servers(ctx, s, m.Name, false)
	for _, v := range all {
		if adopt || v.UID == m.UID || v.UID == "" || m.UID == "" {
			found = append(found, v)
		}
	}
	return s, found, err
}

func (d *restDriver) CreateMachine(ctx context.Context, q *createRequest) (*createResponse, error) {
	if d.bug == bugMutex || d.bug == bugRemembers {
		d.one.Lock()
		defer d.one.Unlock()
	}
	s, found, err := d.find(ctx, q.Class, &machine.Machine{Meta: q.Machine.Meta}, true)
	if err != nil {
		return nil, err
	}
	var v restServer
	switch {
	case d.bug == bugPanics:
		panic("no zone " + s.Zone)
	case len(found) > 0 && d.bug != bugCreatesAgain && (d.bug != bugRemembers || d.made[q.Machine.Name]):
		v = found[0]
	default:
		if v, err = d.make(ctx, q.Machine, s); err != nil {
			return nil, err
		}
	}
	switch {
	case v.State == "ending":
		return nil, codes.New(codes.Aborted, "the VM of this name is being deleted")
	case v.Size != s.Size:
		return nil, codes.Newf(codes.AlreadyExists, "the VM of machine %s is %s, not %s", v.Name, v.Size, s.Size)
	}
	if v.UID != q.Machine.UID {
		mark := map[string]string{"UID": q.Machine.UID}
		if _, err := d.request(ctx, http.MethodPatch, "/servers/"+v.ID, "", mark); err != nil {
			return nil, err
		}
	}
	if err := d.awaitRunning(ctx, &v); err != nil {
		return nil, err
	}
	return &createResponse{ProviderID: v.providerID(), NodeName: v.Name}, nil
}

func (d *restDriver) awaitRunning(ctx context.Context, v *restServer) error {
	for v.State != "running" {
		a, err := d.request(ctx, http.MethodGet, "/servers/"+v.ID, "", nil)
		if err != nil {
			return err
		}
		*v = *a.Server
	}
	return nil
}

// make makes a disk and a server with it.
func (d *restDriver) make(ctx context.Context, m *machine.Machine, s restSpec) (v restServer, err error) {
	name := s.Zone + "/" + m.Name
	token, diskToken := name, name+"/disk"
	switch d.bug {
	case bugCreatesAgain, bugMutex:
		token = ""
	case bugRemembers:
		token = ""
		d.made[m.Name] = true
	}
	if d.bug == bugLeaksDisk {
		diskToken = ""
	}
	disk, err := d.request(ctx, http.MethodPost, "/disks", diskToken, restDisk{Name: name})
	if err != nil {
		return v, err
	}
	made, err := d.request(ctx, http.MethodPost, "/servers", token, restServer{
		Name: m.Name, UID: m.UID, Size: s.Size, Zone: s.Zone, Disk: disk.Disk.ID,
	})
	if err != nil {
		return v, err
	}
	return *made.Server, nil
}

func (d *restDriver) DeleteMachine(ctx context.Context, q *deleteRequest) (*deleteResponse, error) {
	s, found, err := d.find(ctx, q.Class, q.Machine, false)
	if err != nil {
		return nil, err
	}
	if d.bug == bugDeletePanics {
		panic(q.Machine)
	}
	for _, v := range found {
		if err := d.remove(ctx, v); err != nil {
			return nil, err
		}
	}
	if d.bug == bugLeavesDisk {
		return &deleteResponse{}, nil
	}
	return &deleteResponse{}, d.removeDisks(ctx, s, q.Machine, found)
}

// remove removes a server and waits until it is gone.
func (d *restDriver) remove(ctx context.Context, v restServer) error {
	_, err := d.request(ctx, http.MethodDelete, "/servers/"+v.ID, "", nil)
	for err == nil && d.bug != bugDoesNotWait {
		_, err = d.request(ctx, http.MethodGet, "/servers/"+v.ID, "", nil)
	}
	if codes.Of(err) == codes.NotFound || d.bug == bugSwallows {
		return nil
	}
	return err
}

// removeDisks removes the disks of the servers that were removed. If there was none, it removes those
// of the machine's name that no server has.
func (d *restDriver) removeDisks(ctx context.Context, s restSpec, m *machine.Machine, of []restServer) error {
	var ids []string
	for _, v := range of {
		ids = append(ids, v.Disk)
	}
	if m.Spec.ProviderID == "" || len(of) == 0 {
		named, err := d.request(ctx, http.MethodGet, "/disks?"+url.Values{"name": {s.Zone + "/" + m.Name}}.Encode(), "", nil)
		if err != nil {
			return err
		}
		alive, err := d.servers(ctx, s, m.Name, false)
		if err != nil {
			return err
		}
		used := map[string]bool{}
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

func (d *restDriver) GetMachineStatus(ctx context.Context, q *statusRequest) (*statusResponse, error) {
	_, found, err := d.find(ctx, q.Class, q.Machine, false)
	switch {
	case d.bug == bugNothingFound && codes.Of(err) == codes.Unavailable:
	case err != nil:
		return nil, err
	case len(found) > 1:
		return nil, codes.Newf(codes.OutOfRange, "%d VMs are of machine %s", len(found), q.Machine.Name)
	case len(found) == 1 && d.bug == bugStatusPanics:
		panic(found)
	case len(found) == 1:
		id := found[0].providerID()
		if d.bug == bugStatusIDs {
			id = strings.TrimPrefix(id, "rest:///")
		}
		return &statusResponse{ProviderID: id, NodeName: found[0].Name}, nil
	}
	return nil, codes.New(codes.NotFound, "there is no VM of machine "+q.Machine.Name)
}

func (d *restDriver) ListMachines(ctx context.Context, q *listRequest) (*listResponse, error) {
	s, err := d.spec(q.Class)
	if err != nil {
		return nil, err
	}
	all, err := d.servers(ctx, s, "", d.bug == bugFirstPage)
	if err != nil {
		return nil, err
	}
	machines := map[string]string{}
	if d.bug == bugListPanics {
		machines = nil
	}
	for _, v := range all {
		id, name := v.providerID(), v.Name
		if d.bug == bugListsIDs {
			id = strings.ToUpper(id)
		}
		if d.bug == bugListsNames {
			name = v.Zone + "/" + name
		}
		machines[id] = name
	}
	return &listResponse{Machines: machines}, nil
}
