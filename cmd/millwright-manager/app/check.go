package app

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/manager"
)

// kinds are the valid values of the setting kinds, in their order in the name of a lease.
var kinds = []string{
	string(manager.KindMachine), string(manager.KindSet), string(manager.KindDeployment), string(manager.KindClass), string(manager.KindSecret),
	string(manager.KindPool),
}

// check returns an error about the first setting that is invalid, or contradicts others.
func (s *settings) check() error {
	for _, check := range []func() *problemOf{s.checkServers, s.checkParts, s.checkElection, s.checkAddresses, s.checkSizes} {
		if problem := check(); problem != nil {
			return problem
		}
	}
	return nil
}

func (s *settings) checkServers() *problemOf {
	switch {
	case s.NoTarget && s.TargetKubeconfig != "":
		return bad("no-target", "contradicts target-kubeconfig")
	case s.KubeAPIQPS < 0:
		return bad("kube-api-qps", "must not be negative")
	case s.KubeAPIBurst < 1:
		return bad("kube-api-burst", "must be at least 1")
	}
	return nil
}

func (s *settings) checkParts() *problemOf {
	for _, kind := range s.Kinds {
		if !slices.Contains(kinds, kind) {
			return bad("kinds", "%q is none of %s", kind, strings.Join(kinds, ", "))
		}
	}
	if _, err := s.shard(); err != nil {
		return bad("shard", "%q is no INDEX/OF with 0 <= INDEX < OF, such as 0/3", s.Shard)
	}
	for _, lease := range s.OtherManagers {
		namespace, name, qualified := strings.Cut(lease, "/")
		switch {
		case lease == "none" && len(s.OtherManagers) > 1:
			return bad("other-managers", "none stands alone")
		case lease == "none":
		case qualified && (namespace == "" || name == "" || strings.Contains(name, "/")), lease == "":
			return bad("other-managers", "%q is no [NAMESPACE/]LEASE", lease)
		case !qualified && s.Namespace == "":
			return bad("other-managers", "%q needs a namespace: NAMESPACE/LEASE", lease)
		}
	}
	return nil
}

func (s *settings) checkElection() *problemOf {
	switch {
	case s.LeaderElectRetryPeriod <= 0:
		return bad("leader-elect-retry-period", "must be more than zero")
	case s.LeaderElectRenewDeadline*10 <= s.LeaderElectRetryPeriod*12:
		return bad("leader-elect-renew-deadline", "must be more than 1.2 times leader-elect-retry-period")
	case s.LeaderElectLeaseDuration <= s.LeaderElectRenewDeadline:
		return bad("leader-elect-lease-duration", "must be more than leader-elect-renew-deadline")
	case s.LeaderElectLeaseDuration%time.Second != 0:
		return bad("leader-elect-lease-duration", "must be whole seconds")
	case s.ShutdownTimeout <= 0:
		return bad("shutdown-timeout", "must be more than zero")
	}
	return nil
}

// boundAddress is an address where the program serves something, and its setting.
type boundAddress struct{ setting, address string }

// addresses returns the addresses that are set.
func (s *settings) addresses() []boundAddress {
	return slices.DeleteFunc([]boundAddress{
		{"metrics-bind-address", s.MetricsBindAddress}, {"health-bind-address", s.HealthBindAddress}, {"pprof-bind-address", s.PprofBindAddress},
	}, func(b boundAddress) bool { return b.address == "" })
}

func (s *settings) checkAddresses() *problemOf {
	for _, at := range s.addresses() {
		_, port, err := net.SplitHostPort(at.address)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return bad(at.setting, "%q is no HOST:PORT with a port from 0 to 65535", at.address)
		}
	}
	return nil
}

func (s *settings) checkSizes() *problemOf {
	switch {
	case s.Workers < 1:
		return bad("workers", "must be at least 1")
	case s.MaxDrains < 0:
		return bad("max-drains", "must not be negative")
	case s.Resync <= 0:
		return bad("resync", "must be more than zero")
	case s.Settle <= 0:
		return bad("settle", "must be more than zero")
	case s.DriverTimeout <= 0:
		return bad("driver-timeout", "must be more than zero")
	case s.DriverGrace <= 0:
		return bad("driver-grace", "must be more than zero")
	case s.DriverGrace >= s.ShutdownTimeout:
		return bad("driver-grace", "must be less than shutdown-timeout, %s", s.ShutdownTimeout)
	case s.DriverConcurrency < 0:
		return bad("driver-concurrency", "must not be negative")
	case s.DriverQPS < 0:
		return bad("driver-qps", "must not be negative")
	case s.DriverBurst < 1:
		return bad("driver-burst", "must be at least 1")
	}
	return nil
}

// shard parses the setting shard. The zero Shard means all objects.
func (s *settings) shard() (controllers.Shard, error) {
	if s.Shard == "" {
		return controllers.Shard{}, nil
	}
	index, of, _ := strings.Cut(s.Shard, "/")
	i, err := strconv.ParseUint(index, 10, 16)
	if err != nil {
		return controllers.Shard{}, err
	}
	n, err := strconv.ParseUint(of, 10, 16)
	if err == nil && i >= n {
		err = strconv.ErrRange
	}
	return controllers.Shard{Index: int(i), Of: int(n)}, err
}

// otherManagers returns the leases of other managers. Nil means controllers.DefaultOtherManagers.
func (s *settings) otherManagers() []controllers.Lease {
	if len(s.OtherManagers) == 0 {
		return nil
	}
	leases := []controllers.Lease{}
	for _, lease := range s.OtherManagers {
		namespace, name, qualified := strings.Cut(lease, "/")
		switch {
		case lease == "none":
		case qualified:
			leases = append(leases, controllers.Lease{Namespace: namespace, Name: name})
		default:
			leases = append(leases, controllers.Lease{Namespace: s.Namespace, Name: lease})
		}
	}
	return leases
}

// lease returns the name of this manager's lease. Managers of different kinds or shards have different
// leases, unless the setting leader-elect-resource-name says otherwise.
func (s *settings) lease() string {
	if s.LeaderElectResourceName != "" {
		return s.LeaderElectResourceName
	}
	name := "millwright-manager"
	if len(s.Kinds) > 0 {
		for _, kind := range kinds {
			if slices.Contains(s.Kinds, kind) {
				name += "-" + kind
			}
		}
	}
	if part, err := s.shard(); err == nil && part.Of > 1 {
		name += "-" + strconv.Itoa(part.Index) + "-of-" + strconv.Itoa(part.Of)
	}
	return name
}
