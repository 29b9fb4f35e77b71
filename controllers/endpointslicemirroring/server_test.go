// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/serviceendpoints"
	"github.com/setpoint-io/setpoint/internal/servicetest"
	"github.com/setpoint-io/setpoint/object"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// theController works on one key after the other: what comes later has been worked on,
// so what came before has been too.
var theController = managertest.Making(New, Options{Workers: 1, MaxEndpointsPerSubset: 1000})

func bare(service *corev1.Service) { service.Spec.Selector = nil }

// write makes Endpoints of one subset.
func write(t *testing.T, s *servicetest.Scene, name string, subset corev1.EndpointSubset, change ...func(*corev1.Endpoints)) *corev1.Endpoints {
	t.Helper()
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}, Subsets: []corev1.EndpointSubset{subset}}
	for _, c := range change {
		c(e)
	}
	made, err := client.For[*corev1.Endpoints](s.Client).Create(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func one() corev1.EndpointSubset {
	return corev1.EndpointSubset{Addresses: at("192.0.2.1"), Ports: port(5432)}
}

const shown = "IPv4 5432: 192.0.2.1(ready)"

// settled waits until all that was done so far has been worked on.
func settled(t *testing.T, s *servicetest.Scene, name string) {
	t.Helper()
	s.Service(name, bare)
	write(t, s, name, one())
	s.Shows("those of later Endpoints", name, shown)
}

func TestServerEndpointsWithoutSelectorAreMirrored(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	s.Service("db", bare)
	e := write(t, s, "db", corev1.EndpointSubset{
		Addresses: at("192.0.2.1", "2001:db8::1"), NotReadyAddresses: at("192.0.2.2"), Ports: port(5432),
	}, func(e *corev1.Endpoints) {
		e.Labels, e.Annotations = map[string]string{"team": "a"}, map[string]string{"note": "x"}
	})
	s.Shows("a slice for each family", "db", "IPv4 5432: 192.0.2.1(ready) 192.0.2.2()", "IPv6 5432: 2001:db8::1(ready)")
	for _, slice := range s.Slices("db") {
		o := slice.OwnerReferences
		if slice.Labels["team"] != "a" || slice.Labels[discoveryv1.LabelManagedBy] != Manager || slice.Annotations["note"] != "x" || len(o) != 1 || o[0].UID != e.UID {
			t.Errorf("have %v", slice.ObjectMeta)
		}
	}
	servicetest.Change(s, s.Key("db"), func(e *corev1.Endpoints) { e.Subsets[0].Addresses = at("192.0.2.3") })
	s.Shows("a change", "db", "IPv4 5432: 192.0.2.2() 192.0.2.3(ready)")
	servicetest.Delete[*corev1.Endpoints](s, "db")
	s.Shows("Endpoints removed, slices removed", "db")
}

func TestServerWhatIsNotMirrored(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	s.Service("skipped", bare)
	write(t, s, "skipped", one(), func(e *corev1.Endpoints) { e.Labels = map[string]string{discoveryv1.LabelSkipMirror: "true"} })
	s.Service("lock", bare)
	write(t, s, "lock", one(), func(e *corev1.Endpoints) { e.Annotations = map[string]string{serviceendpoints.LeaderElection: "{}"} })
	write(t, s, "nobodys", one())
	s.Service("selecting")
	write(t, s, "selecting", one())
	settled(t, s, "later")
	for _, name := range []string{"skipped", "lock", "nobodys", "selecting"} {
		if s.Made(name) != 0 {
			t.Errorf("%s was mirrored", name)
		}
	}
}

func TestServerMirroringBeginsAndEnds(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	write(t, s, "db", one())
	s.Service("db", bare)
	s.Shows("with its Service", "db", shown)
	skip := func(value string) {
		servicetest.Change(s, s.Key("db"), func(e *corev1.Endpoints) { e.Labels = map[string]string{discoveryv1.LabelSkipMirror: value} })
	}
	skip("true")
	s.Shows("skipped", "db")
	skip("false")
	s.Shows("not skipped", "db", shown)
	selector := func(selector map[string]string) {
		servicetest.Change(s, s.Key("db"), func(service *corev1.Service) { service.Spec.Selector = selector })
	}
	selector(map[string]string{"app": "db"})
	s.Shows("with a selector", "db")
	selector(nil)
	s.Shows("without", "db", shown)
	servicetest.Delete[*corev1.Service](s, "db")
	s.Shows("without its Service", "db")
}

func TestServerSlicesThatSomebodyTouchesAreMendedAndForeignOnesKept(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	s.Service("db", bare)
	write(t, s, "db", one())
	s.Shows("mirrored", "db", shown)
	mine := s.Slices("db")[0]
	servicetest.Change(s, object.KeyOf(mine), func(slice *discoveryv1.EndpointSlice) { slice.Endpoints[0].Addresses = []string{"192.0.2.9"} })
	s.Shows("mended", "db", shown)
	servicetest.Delete[*discoveryv1.EndpointSlice](s, mine.Name)
	s.Until("another", func() bool { all := s.Slices("db"); return len(all) == 1 && all[0].UID != mine.UID })
	servicetest.Change(s, object.KeyOf(s.Slices("db")[0]), func(slice *discoveryv1.EndpointSlice) {
		slice.Labels[discoveryv1.LabelManagedBy] = "me"
	})
	s.Shows("taken away, and made anew", "db", shown, shown)
	servicetest.Delete[*corev1.Endpoints](s, "db")
	s.Shows("the foreign one stays", "db", shown)
}

func TestServerSlicesLeftOverAreRemovedAtTheStart(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	p := s.Run(theController)
	s.Service("db", bare)
	write(t, s, "db", one())
	s.Shows("mirrored", "db", shown)
	p.Stop()
	servicetest.Delete[*corev1.Endpoints](s, "db")
	servicetest.Delete[*corev1.Service](s, "db") // which would have its name looked at
	s.Run(theController)
	s.Shows("removed", "db")
}

func TestServerAtMost1000AddressesOfASubsetAreMirrored(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	var ips []string
	for i := range 1005 {
		ips = append(ips, fmt.Sprintf("192.0.%d.%d", i/250, i%250+1))
	}
	s.Service("db", bare)
	write(t, s, "db", corev1.EndpointSubset{Addresses: at(ips[10:]...), NotReadyAddresses: at(ips[:10]...), Ports: port(1)})
	s.Until("1,000, all that are ready among them", func() bool {
		all := s.Slices("db")
		if len(all) != 1 || len(all[0].Endpoints) != 1000 {
			return false
		}
		ready := 0
		for _, e := range all[0].Endpoints {
			if *e.Conditions.Ready {
				ready++
			}
		}
		return ready == 995
	})
	want := "A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 5 addresses were skipped"
	if have := s.Told("db", "TooManyAddressesToMirror"); have != want {
		t.Errorf("told %q", have)
	}
}

func TestServerItsRightsAreEnough(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	managertest.Run(t, s.Cluster.Restricted(t, Rights()), theController)
	s.Service("db", bare)
	write(t, s, "db", one())
	s.Shows("created", "db", shown)
	servicetest.Change(s, s.Key("db"), func(e *corev1.Endpoints) { e.Subsets[0].Addresses = at("192.0.2.2") })
	s.Shows("updated", "db", "IPv4 5432: 192.0.2.2(ready)")
	servicetest.Delete[*corev1.Endpoints](s, "db")
	s.Shows("deleted", "db")
}

func TestServerKilledAndRestartedInTheMiddleOfItsWork(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	const services, rounds = 12, 6
	for i := range services {
		name := fmt.Sprint("db-", i)
		s.Service(name, bare)
		write(t, s, name, one())
	}
	for round := range rounds {
		p := s.Run(theController)
		s.Until("some slices that are new", func() bool { return len(s.Slices("")) >= min(services, 2*(round+1)) })
		p.Kill()
	}
	p := s.Run(theController)
	s.Until("one slice for each", func() bool {
		for i := range services {
			if !slices.Equal(s.Shown(fmt.Sprint("db-", i)), []string{shown}) {
				return false
			}
		}
		return true
	})
	settled(t, s, "later")
	for i := range services {
		if made := s.Made(fmt.Sprint("db-", i)); made != 1 {
			t.Errorf("%d slices were made for db-%d", made, i)
		}
	}
	if slices.ContainsFunc(p.Writes(), func(w string) bool { return !strings.HasPrefix(w, "POST ") }) {
		t.Errorf("the last process wrote %q", p.Writes())
	}
}
