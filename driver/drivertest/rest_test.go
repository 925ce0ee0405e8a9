package drivertest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/conformance"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// restSuite is what the author of a driver for an HTTP API writes.
func restSuite(bug string) Suite {
	class := func(name, size, zone string) *machine.Class {
		return &machine.Class{
			Meta:     object.Meta{Key: object.Key{Name: name}},
			Provider: restProvider, ProviderSpec: []byte(`{"size":"` + size + `","zone":"` + zone + `"}`),
		}
	}
	return Suite{New: func(t *testing.T) Setup {
		cloud, faults := newRestCloud(t), &Faults{}
		again := func() driver.Driver {
			return &restDriver{url: cloud.URL, client: &http.Client{Transport: faults}, bug: bug, made: map[string]bool{}}
		}
		return Setup{
			Driver: again(), Again: again, Faults: faults,
			Class:        class("small", "small", "blue"),
			Different:    class("large", "large", "blue"),
			OtherCluster: class("green", "small", "green"),
			Invalid:      class("huge", "huge", "blue"),
			Count:        cloud.count,
			Leftovers:    cloud.leftovers,
			Exhaust:      cloud.exhaust,
			PageSize:     cloud.size,
		}
	}}
}

// restBugs says which check finds each bug, and with which words. No other check fails.
var restBugs = map[string][2]string{
	bugPanics:        {createAnswersIt, "CreateMachine panicked: no zone"},
	bugDeletePanics:  {"Delete/of an absent VM is OK", "DeleteMachine panicked"},
	bugListPanics:    {listShows, "ListMachines panicked"},
	bugStatusPanics:  {statusShows, "GetMachineStatus panicked"},
	bugCreatesAgain:  {createRepeats, "adopts the one that is there"},
	bugDoesNotWait:   {deleteRemovesIt, "still exists"},
	bugLeavesDisk:    {deletesAll, `["disk d1" "disk d3"] is left`},
	bugQuotaCode:     {"Quota/that is used up is ResourceExhausted", "answers Unavailable, not ResourceExhausted"},
	bugLeaksDisk:     {"Quota/that is raised makes one VM, and leaves nothing behind", "takes up what it made"},
	bugSwallows:      {"Faults/of a delete: OK means that the VM is gone", "still exists"},
	bugNothingFound:  {"Faults/of a status: no VM is taken for gone", "says nothing of the VM"},
	bugShortenedList: {"Faults/of a list: no VM is left out", "complete, or an error"},
	bugIgnoresCtx:    {"Context/a call under way ends", "did not return within"},
	bugMutex:         {"Processes/creates of one name from two make one VM", "a lock in one of them is none"},
	bugRemembers:     {secondAdopts, "nothing that another process could not know"},
	bugFirstPage:     {listShows, "ListMachines has the IDs []"},
	bugListsIDs:      {listSpells, "one spelling in all calls"},
	bugListsNames:    {listSpells, "one spelling in all calls"},
	bugStatusIDs:     {statusSpells, "one spelling in all calls"},
}

func TestRestDriver(t *testing.T) { Run(t, restSuite("")) }

// changed returns a suite whose setups are changed by change.
func (s Suite) changed(change func(*testing.T, *Setup)) Suite {
	of := s.New
	s.New = func(t *testing.T) Setup {
		setup := of(t)
		change(t, &setup)
		return setup
	}
	return s
}

// A driver that reads the first page only is found by Setup.PageSize, even if a page has more VMs than
// the suite creates otherwise.
func TestPagesOfManyVMs(t *testing.T) {
	conformance.FailsOnly(t, restSuite(bugFirstPage).changed(func(t *testing.T, s *Setup) {
		cloud := newRestCloud(t)
		cloud.size = 20
		s.Driver.(*restDriver).url = cloud.URL
		s.Count, s.Leftovers, s.Exhaust, s.Again, s.PageSize = cloud.count, cloud.leftovers, cloud.exhaust, nil, cloud.size
	}).checks(), everyPage, "")
}

// A disk that a failed create leaves behind is found by Faults, too, without Setup.Exhaust.
func TestLeakFoundByFaults(t *testing.T) {
	conformance.FailsOnly(t, restSuite(bugLeaksDisk).changed(func(_ *testing.T, s *Setup) { s.Exhaust = nil }).checks(), createsFail, "")
}

// If Setup.Faults is not the transport of the driver, its checks are skipped and say so.
func TestFaultsThatAreNotUsed(t *testing.T) {
	said := map[string]bool{}
	for _, o := range conformance.InOrder(t, restSuite("").changed(func(_ *testing.T, s *Setup) { s.Faults = &Faults{} }).checks()) {
		if strings.HasSuffix(o.Left, "goes through Setup.Faults") {
			said[o.Check] = true
		}
	}
	for _, check := range []string{createsFail, "Context/a call under way ends", "Processes/creates of one name from two make one VM"} {
		if !said[check] {
			t.Errorf("%s does not say that it checked nothing", check)
		}
	}
}

// A lock in one process is found without Faults, too.
func TestMutexFoundByARace(t *testing.T) {
	conformance.FailsOnly(t, restSuite(bugMutex).changed(func(_ *testing.T, s *Setup) { s.Faults = nil }).checks(), restBugs[bugMutex][0], "")
}

func TestOneBugFailsOneCheck(t *testing.T) {
	for bug, want := range restBugs {
		t.Run(bug, func(t *testing.T) {
			s := restSuite(bug)
			s.Prompt = conformance.PromptFor(map[string]string{want[0]: want[1]})
			conformance.FailsOnly(t, s.checks(), want[0], want[1])
		})
	}
}

// A failure says once which duty was not met, what was seen, and why it matters.
func TestFailureSaysWhy(t *testing.T) {
	failed := 0
	for _, o := range conformance.InOrder(t, restSuite(bugCreatesAgain).checks()) {
		if !o.Failed {
			continue
		}
		failed++
		for _, want := range []string{"VM \"rest:///blue/s2\"", "\n  duty: Create is idempotent by name", "\n  why it matters: " + why[createRepeats]} {
			if strings.Count(o.Text, want) < 1 || strings.HasPrefix(want, "\n") && strings.Count(o.Text, want) > 1 {
				t.Errorf("the failure does not say %q once:\n%s", want, o.Text)
			}
		}
	}
	if failed == 0 {
		t.Error("nothing fails")
	}
}

func TestDuties(t *testing.T) { duties.Judge(t, (Suite{}).checks()) }

const restProvider = "rest"

// restDriver is the driver of a restCloud. It has one of the restBugs, or, if bug is empty, meets every
// duty.
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

// find returns the servers of a machine, with adopt also those marked with another UID.
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

// make creates a disk and a server that has it.
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

// restServer and restDisk are what a restCloud has.
type (
	restServer struct{ ID, Name, UID, Size, Zone, Disk, State string }
	restDisk   struct{ ID, Name string }
)

// restCloud is a provider with an HTTP API. Names need not be unique. A repeated creation with the same
// token returns what the first has created. Creating and deleting take time: a GET of a server starts it,
// if it is booting, or removes it, if it is being deleted.
type restCloud struct {
	URL  string
	size int // of a page of servers

	mu      sync.Mutex
	servers map[string]*restServer
	disks   map[string]*restDisk
	tokens  map[string]string // the ID of what was made with each
	number  int
	full    bool // no server is made
}

func newRestCloud(t *testing.T) *restCloud {
	c := &restCloud{size: 3, servers: map[string]*restServer{}, disks: map[string]*restDisk{}, tokens: map[string]string{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

func (c *restCloud) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.servers)
}

// exhaust uses up the quota of servers.
func (c *restCloud) exhaust(context.Context) (restore func()) {
	set := func(full bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.full = full
	}
	set(true)
	return func() { set(false) }
}

// restAnswer is the body of each answer, in the parts that it has.
type restAnswer struct {
	Error   string
	Server  *restServer
	Servers []restServer
	Next    int // the page after this one; 0: this is the last one
	Disk    *restDisk
	Disks   []restDisk
}

func (c *restCloud) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind, id, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/"), "/")
	var status int
	var a restAnswer
	switch kind {
	case "servers":
		status, a = c.serveServers(q, id)
	case "disks":
		status, a = c.serveDisks(q, id)
	default:
		status = http.StatusNotFound
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a)
}

func (c *restCloud) serveServers(q *http.Request, id string) (int, restAnswer) {
	switch {
	case q.Method == http.MethodPost:
		return c.makeServer(q)
	case id == "":
		return http.StatusOK, c.page(q.URL.Query())
	case c.servers[id] == nil:
		return http.StatusNotFound, restAnswer{Error: "no such server"}
	}
	s := c.servers[id]
	switch {
	case q.Method == http.MethodDelete:
		s.State = "ending"
	case q.Method == http.MethodPatch:
		_ = json.NewDecoder(q.Body).Decode(s)
	case s.State == "ending":
		delete(c.servers, id)
	default:
		s.State = "running"
	}
	shown := *s
	return http.StatusOK, restAnswer{Server: &shown}
}

func (c *restCloud) makeServer(q *http.Request) (int, restAnswer) {
	s := &restServer{}
	_ = json.NewDecoder(q.Body).Decode(s)
	token := q.Header.Get("Token")
	if made := c.servers[c.tokens[token]]; made != nil && token != "" {
		shown := *made
		return http.StatusOK, restAnswer{Server: &shown}
	}
	if c.full {
		return http.StatusForbidden, restAnswer{Error: "the quota of servers is used up"}
	}
	s.ID, s.State = c.newID("s"), "booting"
	c.servers[s.ID], c.tokens[token] = s, s.ID
	shown := *s
	return http.StatusCreated, restAnswer{Server: &shown}
}

func (c *restCloud) newID(prefix string) string {
	c.number++
	return prefix + strconv.Itoa(c.number)
}

// page returns the servers of a zone and, if one is given, of a name.
func (c *restCloud) page(q url.Values) (a restAnswer) {
	var all []restServer
	for _, s := range c.servers {
		if s.Zone == q.Get("zone") && (q.Get("name") == "" || s.Name == q.Get("name")) {
			all = append(all, *s)
		}
	}
	slices.SortFunc(all, func(a, b restServer) int { return cmp.Or(len(a.ID)-len(b.ID), cmp.Compare(a.ID, b.ID)) })
	n, _ := strconv.Atoi(q.Get("page"))
	from := min(n*c.size, len(all))
	to := min(from+c.size, len(all))
	if to < len(all) {
		a.Next = n + 1
	}
	a.Servers = all[from:to]
	return a
}

func (c *restCloud) serveDisks(q *http.Request, id string) (int, restAnswer) {
	switch {
	case q.Method == http.MethodPost:
		d := &restDisk{}
		_ = json.NewDecoder(q.Body).Decode(d)
		token := q.Header.Get("Token")
		if made := c.disks[c.tokens[token]]; made != nil && token != "" {
			return http.StatusOK, restAnswer{Disk: made}
		}
		d.ID = c.newID("d")
		c.disks[d.ID], c.tokens[token] = d, d.ID
		return http.StatusCreated, restAnswer{Disk: d}
	case q.Method == http.MethodDelete && c.disks[id] != nil:
		delete(c.disks, id)
		return http.StatusOK, restAnswer{}
	case q.Method == http.MethodGet:
		var of []restDisk
		for _, d := range c.disks {
			if d.Name == q.URL.Query().Get("name") {
				of = append(of, *d)
			}
		}
		return http.StatusOK, restAnswer{Disks: of}
	}
	return http.StatusNotFound, restAnswer{Error: "no such disk"}
}

// leftovers names the disks.
func (c *restCloud) leftovers() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, id := range slices.Sorted(maps.Keys(c.disks)) {
		all = append(all, "disk "+id)
	}
	return all
}
