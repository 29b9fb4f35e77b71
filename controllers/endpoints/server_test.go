// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/serviceendpoints"
	"github.com/setpoint-io/setpoint/internal/servicetest"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// theController works on one key after the other: what comes later has been worked on,
// so what came before has been too.
var theController = managertest.Making(New, Options{Workers: 1})

// shows waits until the Endpoints of a name show this, as text writes it.
func shows(s *servicetest.Scene, what, name, want string) {
	s.Until(what+": "+want, func() bool {
		e := s.Endpoints(name)
		return e != nil && text(e.Subsets) == want
	})
}

// settled waits until all that was done so far has been worked on.
func settled(s *servicetest.Scene, name string) {
	s.Service(name)
	shows(s, "the Endpoints of a later Service", name, "")
}

// writes returns what a process wrote of the Endpoints of a name: the verbs.
func writes(p *managertest.Process, s *servicetest.Scene, name string) (others []string) {
	path := "/api/v1/namespaces/" + s.Namespace + "/endpoints/" + name
	for _, w := range p.Writes() {
		if verb, ok := strings.CutSuffix(w, " "+path); ok {
			others = append(others, verb)
		}
	}
	return others
}

func ip(n int) string { return servicetest.IP("web", n) }

func TestServerALifeOfPods(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	p := s.Run(theController)
	s.Service("web")
	shows(s, "nobody", "web", "")
	s.Pod("web", 0)
	shows(s, "one", "web", ip(0)+" /: 8080")
	s.Pod("web", 1, servicetest.Unready)
	shows(s, "one not ready", "web", ip(0)+" / "+ip(1)+": 8080")
	servicetest.Change(s, s.Key("web-1"), servicetest.Ready, "status")
	shows(s, "both ready", "web", ip(0)+" "+ip(1)+" /: 8080")
	servicetest.Change(s, s.Key("web-1"), func(pod *corev1.Pod) { pod.Labels["app"] = "quarantine" })
	shows(s, "one with other labels", "web", ip(0)+" /: 8080")
	servicetest.Change(s, s.Key("web-0"), func(pod *corev1.Pod) {
		pod.Status.PodIP, pod.Status.PodIPs = ip(7), []corev1.PodIP{{IP: ip(7)}}
	}, "status")
	shows(s, "another address", "web", ip(7)+" /: 8080")
	servicetest.Delete[*corev1.Pod](s, "web-0", client.GracePeriod(time.Minute))
	shows(s, "it terminates", "web", "")
	settled(s, "later")
	if have, want := len(writes(p, s, "web")), 6; have != want {
		t.Errorf("%d updates for %d changes", have, want)
	}
}

func TestServerLabelsAndTriggerTime(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	s.Service("web", func(service *corev1.Service) { service.Labels = map[string]string{"team": "a"} })
	shows(s, "nobody", "web", "")
	if l := s.Endpoints("web").Labels; l["team"] != "a" || l[labelManagedBy] != source {
		t.Errorf("labels %v", l)
	}
	at := metav1.NewTime(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))
	s.Pod("web", 0, func(pod *corev1.Pod) { pod.Status.Conditions[0].LastTransitionTime = at })
	shows(s, "one", "web", ip(0)+" /: 8080")
	if a := s.Endpoints("web").Annotations[corev1.EndpointsLastChangeTriggerTime]; a != "2026-05-04T03:02:01Z" {
		t.Errorf("the trigger time is %q", a)
	}
	servicetest.Change(s, s.Key("web"), func(service *corev1.Service) { service.Labels["team"] = "b" })
	s.Until("the other label", func() bool { return s.Endpoints("web").Labels["team"] == "b" })
}

func TestServerHeadlessServices(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	s.Service("web", func(service *corev1.Service) { service.Spec.ClusterIP, service.Spec.Ports = corev1.ClusterIPNone, nil })
	s.Pod("web", 0, func(pod *corev1.Pod) { pod.Spec.Hostname, pod.Spec.Subdomain = "zero", "web" })
	shows(s, "without ports", "web", ip(0)+" /:")
	e := s.Endpoints("web")
	if _, ok := e.Labels[corev1.IsHeadlessService]; !ok || e.Subsets[0].Addresses[0].Hostname != "zero" {
		t.Errorf("have %v", e)
	}
}

// Endpoints have one family: the first of their Service.
func TestServerEndpointsOfADualStackServiceAreOfItsFirstFamily(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	dual := func(families ...corev1.IPFamily) func(*corev1.Service) {
		return func(service *corev1.Service) {
			service.Spec.Selector = map[string]string{"app": "web"}
			service.Spec.IPFamilyPolicy, service.Spec.IPFamilies = new(corev1.IPFamilyPolicyRequireDualStack), families
		}
	}
	s.Service("four", dual(corev1.IPv4Protocol, corev1.IPv6Protocol))
	s.Service("six", dual(corev1.IPv6Protocol, corev1.IPv4Protocol))
	s.Pod("web", 0, servicetest.DualStack)
	s.Pod("web", 1)
	shows(s, "IPv4 first", "four", ip(0)+" "+ip(1)+" /: 8080")
	shows(s, "IPv6 first, which one Pod does not have", "six", servicetest.IP6("web", 0)+" /: 8080")
}

func TestServerEndpointsGoWithTheirService(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	p := s.Run(theController)
	s.Service("web")
	shows(s, "some", "web", "")
	servicetest.Delete[*corev1.Service](s, "web")
	s.Until("they are gone", func() bool { return s.Endpoints("web") == nil })
	settled(s, "later")
	// The server deletes them, too: who is first does it.
	if have := writes(p, s, "web"); len(have) > 1 {
		t.Errorf("writes %q", have)
	}
}

func TestServerDeletedEndpointsComeBack(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	s.Service("web")
	s.Pod("web", 0)
	shows(s, "one", "web", ip(0)+" /: 8080")
	first := s.Endpoints("web").UID
	servicetest.Delete[*corev1.Endpoints](s, "web")
	s.Until("others", func() bool {
		e := s.Endpoints("web")
		return e != nil && e.UID != first && text(e.Subsets) == ip(0)+" /: 8080"
	})
}

// written makes Endpoints by hand.
func written(t *testing.T, s *servicetest.Scene, name string, annotations map[string]string) *corev1.Endpoints {
	t.Helper()
	e, err := client.For[*corev1.Endpoints](s.Client).Create(t.Context(), &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Annotations: annotations},
		Subsets:    []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}}, Ports: []corev1.EndpointPort{{Port: 5432}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestServerEndpointsWithoutServiceAreRemovedAtTheStartUnlessTheyAreALock(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	written(t, s, "left", nil)
	lock := written(t, s, "lock", map[string]string{serviceendpoints.LeaderElection: "{}"})
	s.Run(theController)
	s.Until("what was left is gone", func() bool { return s.Endpoints("left") == nil })
	settled(s, "later")
	if e := s.Endpoints("lock"); e == nil || e.UID != lock.UID {
		t.Errorf("the lock is %v", e)
	}
}

func TestServerEndpointsOfOthersAreLeftAlone(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Service("bare", func(service *corev1.Service) { service.Spec.Selector = nil })
	s.Service("elsewhere", func(service *corev1.Service) {
		service.Spec.Type, service.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.com"
	})
	before := map[string]*corev1.Endpoints{"bare": written(t, s, "bare", nil), "elsewhere": written(t, s, "elsewhere", nil)}
	s.Pod("elsewhere", 0)
	s.Run(theController)
	settled(s, "later")
	for name, e := range before {
		if now := s.Endpoints(name); now == nil || now.ResourceVersion != e.ResourceVersion {
			t.Errorf("%s is now %v", name, now)
		}
	}
}

func TestServerEndpointsOverCapacityAreTruncatedOnce(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Pods("web", 0, 1005)
	s.Service("web")
	p := s.Run(theController)
	s.Until("1,000 of them", func() bool {
		e := s.Endpoints("web")
		return e != nil && len(e.Subsets) == 1 && len(e.Subsets[0].Addresses) == capacity && e.Annotations[corev1.EndpointsOverCapacity] == truncated
	})
	version := s.Endpoints("web").ResourceVersion
	servicetest.Change(s, s.Key("web"), func(service *corev1.Service) { service.Annotations = map[string]string{"any": "thing"} })
	settled(s, "later")
	if have := writes(p, s, "web"); len(have) != 0 || s.Endpoints("web").ResourceVersion != version {
		t.Errorf("they were written again: %q", have)
	}
	for n := range 5 {
		servicetest.Delete[*corev1.Pod](s, fmt.Sprint("web-", n))
	}
	s.Until("the annotation goes", func() bool {
		e := s.Endpoints("web")
		return len(e.Subsets[0].Addresses) == capacity && e.Annotations[corev1.EndpointsOverCapacity] == "" && e.Subsets[0].Addresses[0].IP != ip(0)
	})
}

func TestServerANamespaceThatTerminatesGetsNoEndpoints(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Service("web")
	if _, err := s.Cluster.Kubectl("delete", "namespace", s.Namespace, "--wait=false"); err != nil {
		t.Fatal(err)
	}
	other := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	settled(other, "later")
	if e := s.Endpoints("web"); e != nil {
		t.Errorf("there are %v", e)
	}
}

func TestServerItsRightsAreEnough(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	written(t, s, "left", nil)
	managertest.Run(t, s.Cluster.Restricted(t, Rights()), theController)
	s.Service("web")
	shows(s, "created", "web", "")
	s.Pod("web", 0)
	shows(s, "updated", "web", ip(0)+" /: 8080")
	s.Until("what was left is deleted", func() bool { return s.Endpoints("left") == nil })
}

// An Event on the Service says what the server refused, in upstream's words.
func TestServerARefusalIsTold(t *testing.T) {
	without := func(verb string) []rbacv1.PolicyRule {
		rules := Rights()
		for i := range rules {
			if slices.Contains(rules[i].Resources, "endpoints") {
				rules[i].Verbs = slices.DeleteFunc(rules[i].Verbs, func(v string) bool { return v == verb })
			}
		}
		return rules
	}
	for _, refused := range []struct{ verb, reason, note string }{
		{"create", "FailedToCreateEndpoint", "Failed to create endpoint for service "},
		{"update", "FailedToUpdateEndpoint", "Failed to update endpoint "},
	} {
		t.Run(refused.verb, func(t *testing.T) {
			s := servicetest.On(t, shared.Get(t))
			if refused.verb == "update" {
				written(t, s, "web", nil)
			}
			s.Service("web")
			managertest.Run(t, s.Cluster.Restricted(t, without(refused.verb)), theController)
			if note := s.Told("web", refused.reason); !strings.HasPrefix(note, refused.note+s.Namespace+"/web: ") {
				t.Errorf("it says %q", note)
			}
		})
	}
}

func TestServerKilledAndRestartedInTheMiddleOfItsWork(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	const services, rounds, pods = 12, 6, 3
	for i := range services {
		s.Service(fmt.Sprint("web-", i), func(service *corev1.Service) { service.Spec.Selector = map[string]string{"app": "web"} })
	}
	for round := range rounds {
		p := s.Run(theController)
		s.Pods("web", round*pods, pods)
		s.Until("some more Endpoints", func() bool {
			n := 0
			for i := range services {
				if s.Endpoints(fmt.Sprint("web-", i)) != nil {
					n++
				}
			}
			return n >= min(services, 2*(round+1))
		})
		p.Kill()
	}
	p := s.Run(theController)
	s.Until("all Pods in the Endpoints of each Service", func() bool {
		for i := range services {
			e := s.Endpoints(fmt.Sprint("web-", i))
			if e == nil || len(e.Subsets) != 1 || len(e.Subsets[0].Addresses) != rounds*pods {
				return false
			}
		}
		return true
	})
	settled(s, "later")
	for i := range services {
		if have := writes(p, s, fmt.Sprint("web-", i)); len(have) > 1 {
			t.Errorf("the last process wrote web-%d with %q", i, have)
		}
	}
}
