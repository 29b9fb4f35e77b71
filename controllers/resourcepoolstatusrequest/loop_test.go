// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcepoolstatusrequest

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server in memory, inside of a bubble of synctest.
type cluster struct {
	t                *testing.T
	requests, slices *fakeapi.Resource
}

func start(t *testing.T) (*cluster, *managertest.Process) {
	t.Helper()
	c, api := serve(t)
	p := managertest.Run(t, api.Config(), managertest.Making(New, Defaults()))
	synctest.Wait()
	return c, p
}

func serve(t *testing.T) (*cluster, *fakeapi.Server) {
	t.Helper()
	api := fakeapi.New()
	of := func(version, plural, kind string, namespaced bool) *fakeapi.Resource {
		return api.Serve(object.Resource{Group: "resource.k8s.io", Version: version, Plural: plural, Kind: kind, Namespaced: namespaced}, fakeapi.WithStatus())
	}
	c := &cluster{t: t, requests: of("v1alpha3", "resourcepoolstatusrequests", "ResourcePoolStatusRequest", false), slices: of("v1", "resourceslices", "ResourceSlice", false)}
	of("v1", "resourceclaims", "ResourceClaim", true)
	of("v1", "devicetaintrules", "DeviceTaintRule", false)
	return c, api
}

func (c *cluster) add(request *resourcev1alpha3.ResourcePoolStatusRequest, slices ...*resourcev1.ResourceSlice) {
	c.t.Helper()
	for _, slice := range slices {
		if err := c.slices.Add(slice); err != nil {
			c.t.Fatal(err)
		}
	}
	synctest.Wait() // an answer counts what the caches show
	if request != nil {
		if err := c.requests.Add(request); err != nil {
			c.t.Fatal(err)
		}
	}
	synctest.Wait()
}

// status returns the condition of the request and its pools, or "none".
func (c *cluster) status() string {
	c.t.Helper()
	r, err := fakeapi.Read[*resourcev1alpha3.ResourcePoolStatusRequest](c.requests, object.Key{Name: "r"})
	if err != nil {
		return "no request"
	}
	if r.Status == nil {
		return "none"
	}
	return text(*r.Status)
}

func TestARequestIsAnsweredOnceAndGoesAnHourLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := start(t)
		c.add(request(), slice("p", resourcev1.Device{Name: "a"}))
		want := "[p on n: 1 total, 0 allocated, 0 unavailable, 1 available] of 1: Calculated status for 1 pools"
		if got := c.status(); got != want {
			t.Errorf("the status is %s", got)
		}
		c.add(nil, slice("q"))
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if got := c.status(); got != want {
			t.Errorf("with another slice, 59 minutes later, the status is %s", got)
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if got := c.status(); got != "no request" {
			t.Errorf("an hour later the status is %s", got)
		}
	})
}

func TestARequestWaitsForAPoolThatIsIncompleteForADayAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := start(t)
		first := slice("p", resourcev1.Device{Name: "a"})
		first.Spec.Pool.ResourceSliceCount = 2
		c.add(request(), first)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := p.Reasons("r"); c.status() != "none" || len(got) != 1 || !strings.HasPrefix(got[0], "PoolIncomplete: the driver gpu.example.com has not published all slices of its pools p") {
			t.Errorf("the status is %s, and the reasons are %q", c.status(), got)
		}
		second := first.DeepCopy()
		second.Name, second.UID, second.Spec.Devices[0].Name = "second", "", "b"
		c.add(nil, second)
		if got := c.status(); got != "[p on n: 2 total, 0 allocated, 0 unavailable, 2 available] of 1: Calculated status for 1 pools" {
			t.Errorf("with both slices the status is %s", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, _ := start(t)
		first := slice("p")
		first.Spec.Pool.ResourceSliceCount = 2
		c.add(request(), first)
		time.Sleep(24*time.Hour - time.Second)
		synctest.Wait()
		if got := c.status(); got != "none" {
			t.Errorf("within a day the status is %s", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := c.status(); got != "no request" {
			t.Errorf("after a day the status is %s", got)
		}
	})
}

// kube-controller-manager answers with Failed where its caches fail. Such an answer is one too.
func TestARequestThatHasFailedElsewhereStaysAnHourAndGetsNoOtherAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := start(t)
		failed := request()
		failed.Status = &resourcev1alpha3.ResourcePoolStatusRequestStatus{PoolCount: new(int32), Conditions: []metav1.Condition{{
			Type: resourcev1alpha3.ResourcePoolStatusRequestConditionFailed, Status: metav1.ConditionTrue, Reason: "CalculationFailed", LastTransitionTime: metav1.Now(),
		}}}
		c.add(failed, slice("p", resourcev1.Device{Name: "a"}))
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if writes := p.Writes(); len(writes) > 0 || c.status() == "no request" {
			t.Errorf("59 minutes later the status is %s, and the writes are %q", c.status(), writes)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := c.status(); got != "no request" {
			t.Errorf("an hour later the status is %s", got)
		}
	})
}

func TestAnAnswerThatWasLostOrRefusedIsGivenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := start(t)
		c.requests.RefuseNext(1, "update", fakeapi.Forbidden("resourcepoolstatusrequests/status"))
		c.requests.LoseNext(1, "update")
		c.add(request(), slice("p"))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := c.status(); got == "none" {
			t.Errorf("the status is %s", got)
		}
	})
}

func TestAProcessThatIsKilledAfterItsAnswerGivesItOnce(t *testing.T) {
	managertest.KilledAfterEachWrite(t, func(t *testing.T) managertest.Scene {
		c, api := serve(t)
		c.add(request(), slice("p", resourcev1.Device{Name: "a"}))
		return managertest.Scene{
			Config: api.Config(), Make: managertest.Making(New, Defaults()),
			Await: func() { time.Sleep(time.Minute); synctest.Wait() },
			Check: func(t *testing.T) {
				if got := c.status(); got != "[p on n: 1 total, 0 allocated, 0 unavailable, 1 available] of 1: Calculated status for 1 pools" {
					t.Errorf("the status is %s", got)
				}
			},
		}
	})
}

func TestAnswersAreCountedAndTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, api := serve(t)
		refused := false
		c.requests.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "update" && !refused {
				refused = true
				return fakeapi.Forbidden("resourcepoolstatusrequests")
			}
			return nil
		})
		var metrics prometheus.Collector
		managertest.Run(t, api.Config(), managertest.MakingMetrics(New, Defaults(), &metrics))
		c.add(request(), slice("p", resourcev1.Device{Name: "a"}))
		time.Sleep(time.Minute)
		synctest.Wait()
		driver := `{driver_name="` + request().Spec.Driver + `"}`
		const prefix = "resourcepoolstatusrequest_controller_"
		want := map[string]float64{
			prefix + "requests_processed_total" + driver:            2,
			prefix + "request_processing_errors_total" + driver:     1,
			prefix + "request_processing_duration_seconds" + driver: 2,
		}
		if got := managertest.Series(t, metrics); !maps.Equal(got, want) {
			t.Errorf("the series are %v, want %v", got, want)
		}
	})
}
