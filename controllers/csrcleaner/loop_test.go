// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrcleaner

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var requests = object.Resource{Group: "certificates.k8s.io", Version: "v1", Plural: "certificatesigningrequests", Kind: "CertificateSigningRequest"}

// cluster is a server with requests, inside of a bubble of synctest.
type cluster struct {
	*fakeapi.Resource
	t       *testing.T
	deletes atomic.Int64 // asked for
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{Resource: fakeapi.New().Serve(requests), t: t}
	c.Before(func(q *fakeapi.Request) *metav1.Status {
		if q.Verb == "delete" {
			c.deletes.Add(1)
		}
		return nil
	})
	return c
}

// start runs the controller, and returns when it has nothing to do.
func (c *cluster) start() *managertest.Process {
	c.t.Helper()
	p := managertest.Run(c.t, c.Config(), managertest.Making(New, Defaults()))
	synctest.Wait()
	return p
}

func (c *cluster) add(name string, conditions ...certificatesv1.CertificateSigningRequestCondition) {
	c.t.Helper()
	if err := c.Add(request(name, conditions...)); err != nil {
		c.t.Fatal(err)
	}
}

func request(name string, conditions ...certificatesv1.CertificateSigningRequestCondition) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     certificatesv1.CertificateSigningRequestStatus{Conditions: conditions},
	}
}

// pass lets time pass and what is due then be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (c *cluster) want(when string, names ...string) {
	c.t.Helper()
	if got := strings.Join(c.Keys(), " "); got != strings.Join(names, " ") {
		c.t.Fatalf("%s there are %q, want %q", when, got, strings.Join(names, " "))
	}
}

func TestRequestsGoWhenTheirTimeHasPassedAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add("undecided")
		c.add("denied", condition(certificatesv1.CertificateDenied, time.Now()))
		c.start()
		pass(time.Hour)
		c.want("at the end of the hour", "denied", "undecided")
		pass(time.Nanosecond)
		c.want("after the hour", "undecided")
		pass(23*time.Hour - time.Nanosecond)
		c.want("at the end of the day", "undecided")
		pass(time.Nanosecond)
		c.want("after the day")
	})
}

func TestAnAnsweredRequestGoesWithItsCertificateOrAnHourAfterItsApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		for name, until := range map[string]time.Duration{"short": 20 * time.Minute, "long": 24 * time.Hour, "expired": -time.Minute} {
			if err := c.Add(&certificatesv1.CertificateSigningRequest{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Status: certificatesv1.CertificateSigningRequestStatus{
					Conditions:  []certificatesv1.CertificateSigningRequestCondition{condition(certificatesv1.CertificateApproved, time.Now())},
					Certificate: certificateUntil(t, time.Now().Add(until)),
				},
			}); err != nil {
				t.Fatal(err)
			}
		}
		c.start()
		c.want("at the start", "long", "short")
		pass(20 * time.Minute)
		c.want("in the last moment of the certificate", "long", "short")
		pass(time.Nanosecond)
		c.want("after it", "long")
		pass(40 * time.Minute)
		c.want("an hour after the approval")
	})
}

func TestARequestThatSomebodyHoldsIsNotDeletedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		if err := c.Add(&certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "held", DeletionTimestamp: new(metav1.Now()), Finalizers: []string{"example.org/held"}},
			Status: certificatesv1.CertificateSigningRequestStatus{
				Conditions: []certificatesv1.CertificateSigningRequestCondition{condition(certificatesv1.CertificateDenied, time.Now())},
			},
		}); err != nil {
			t.Fatal(err)
		}
		c.start()
		pass(48 * time.Hour)
		if n := c.deletes.Load(); n != 0 {
			t.Errorf("%d deletes, want none", n)
		}
	})
}

func TestARequestThatIsDecidedAtTheLastMomentStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add("request")
		c.start()
		pass(24*time.Hour - time.Second)
		c.HoldWatches(true) // the cache lags from here on
		approved := request("request", condition(certificatesv1.CertificateApproved, time.Now()))
		approved.CreationTimestamp = c.Get(object.KeyOf(approved)).GetCreationTimestamp()
		if err := c.Put(approved); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		if c.deletes.Load() == 0 {
			t.Fatal("no delete was tried: the cache did not lag")
		}
		c.want("after the day", "request")
		c.HoldWatches(false)
		pass(23 * time.Hour)
		c.want("within the day of the approval", "request")
		pass(2 * time.Hour)
		c.want("after that")
	})
}

func TestACleanerThatIsEndedAndStartedAgainDeletesWhatIsDueOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		for _, name := range []string{"a", "b", "c"} {
			c.add(name, condition(certificatesv1.CertificateDenied, time.Now()))
			pass(20 * time.Minute)
		}
		p := c.start()
		pass(time.Minute) // a was due at the hour
		p.Stop()
		c.want("when it ends", "b", "c")
		pass(time.Hour)
		c.start()
		c.want("when it is back")
		if n := c.deletes.Load(); n != 3 {
			t.Errorf("%d deletes, want 3", n)
		}
	})
}
