// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pcrcleaner

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// add adds a request of an age.
func add(t *testing.T, requests *fakeapi.Resource, name string, age time.Duration) {
	t.Helper()
	if err := requests.Add(&certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(time.Now().Add(-age)),
	}}); err != nil {
		t.Fatal(err)
	}
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestARequestGoesWhenItIsFifteenMinutesOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := fakeapi.New().Serve(kind)
		for _, minutes := range []int{4, 9, 14, 16} {
			add(t, requests, fmt.Sprint("m", minutes), time.Duration(minutes)*time.Minute)
		}
		p := managertest.Run(t, requests.Config(), managertest.Making(New, Defaults()))
		for i, want := range []string{"m14 m4 m9", "m4 m9", "m4", ""} {
			pass(time.Second)
			var names []string
			for _, key := range requests.Keys() {
				names = append(names, strings.TrimPrefix(key, "shop/"))
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("after %d periods there are %q, want %q", i, got, want)
			}
			pass(period - time.Second)
		}
		if n := len(p.Writes()); n != 4 {
			t.Errorf("%d writes, want 4", n)
		}
	})
}

func TestAServerWithoutTheKindIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New()
		p := managertest.Run(t, api.Config(), managertest.Making(New, Defaults()))
		pass(time.Hour)
		if lines := p.Warnings(); len(lines) > 0 {
			t.Errorf("the log says %q", lines)
		}
		present := p.Runs().Present(runs.Query{})
		if len(present) != 1 || len(present[0].Reasons) != 1 || present[0].Reasons[0].Code != codeNotServed {
			t.Errorf("%+v", present)
		}
		requests := api.Serve(kind) // after an upgrade
		add(t, requests, "old", time.Hour)
		pass(period)
		if keys := requests.Keys(); len(keys) > 0 {
			t.Errorf("there are %q", keys)
		}
	})
}

func TestAFailedDeleteStopsNoOtherAndAnotherRequestOfTheNameStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := fakeapi.New().Serve(kind)
		for _, name := range []string{"a", "b", "c"} {
			add(t, requests, name, time.Hour)
		}
		refused, replaced := 0, false
		requests.Before(func(q *fakeapi.Request) *metav1.Status {
			switch {
			case q.Verb != "delete":
			case q.Key.Name == "a" && refused < 1:
				refused++
				return fakeapi.Forbidden("podcertificaterequests")
			case q.Key.Name == "b" && !replaced:
				replaced = true
				requests.Remove(q.Key)
				add(t, requests, "b", 0)
			}
			return nil
		})
		managertest.Run(t, requests.Config(), managertest.Making(New, Defaults()))
		pass(time.Second)
		if requests.Get(object.Key{Namespace: "shop", Name: "c"}) != nil {
			t.Error("c stays, because a could not be deleted")
		}
		pass(time.Minute)
		if got := strings.Join(requests.Keys(), " "); got != "shop/b" {
			t.Errorf("there are %q, want the new b", got)
		}
	})
}

func TestAProcessThatIsKilledAfterItsDeletesMakesEachOfThemOnce(t *testing.T) {
	managertest.KilledAfterEachWrite(t, func(t *testing.T) managertest.Scene {
		requests := fakeapi.New().Serve(kind)
		for _, name := range []string{"a", "b", "c"} {
			add(t, requests, name, time.Hour)
		}
		add(t, requests, "young", 0)
		return managertest.Scene{
			Config: requests.Config(), Make: managertest.Making(New, Defaults()), Await: func() { pass(period) },
			Check: func(t *testing.T) {
				if got := strings.Join(requests.Keys(), " "); got != "shop/young" {
					t.Errorf("there are %q, want the young one", got)
				}
			},
		}
	})
}
