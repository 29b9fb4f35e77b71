// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"testing"
	"testing/synctest"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// Kinds that several tests serve in a [Bubble].
var (
	Pods    = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
	Claims  = object.Resource{Version: "v1", Plural: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespaced: true}
	Volumes = object.Resource{Version: "v1", Plural: "persistentvolumes", Kind: "PersistentVolume"}
)

// Bubble is a server in memory inside of a bubble of synctest, with the Events that controllers
// record.
type Bubble struct {
	*fakeapi.Server
	Client *client.Client

	t      testing.TB
	events *fakeapi.Resource
}

// NewBubble returns a server with Events and nothing else. The test serves the kinds that it needs
// before it starts a controller.
func NewBubble(t testing.TB) *Bubble {
	t.Helper()
	b := &Bubble{Server: fakeapi.New(), t: t}
	b.events = b.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true})
	var err error
	if b.Client, err = client.New(b.Config()); err != nil {
		t.Fatal(err)
	}
	return b
}

// Start runs controllers as one process, and waits until they have nothing to do.
func (b *Bubble) Start(controllers ...Make) *Process {
	b.t.Helper()
	p := Run(b.t, b.Config(), controllers...)
	Settle()
	return p
}

// Settle lets a minute pass, in which every retry and every delay that is due ends.
func Settle() { Pass(time.Minute) }

// Pass lets time pass, and the controllers do what is due.
func Pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Notes returns what the Events of a reason say, in the order of their names.
func (b *Bubble) Notes(reason string) (notes []string) {
	b.t.Helper()
	all, err := fakeapi.Objects[*eventsv1.Event](b.events)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range all {
		if e.Reason == reason {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

// Add adds an object as it is.
func (b *Bubble) Add(to *fakeapi.Resource, objects ...object.Object) {
	b.t.Helper()
	for _, o := range objects {
		if err := to.Add(o); err != nil {
			b.t.Fatal(err)
		}
	}
}

// Delete deletes an object as a user does, and settles.
func (b *Bubble) Delete(from *fakeapi.Resource, key object.Key) {
	b.t.Helper()
	if err := client.ForResource[*metav1.PartialObjectMetadata](b.Client, from.Resource).Delete(b.t.Context(), key, client.GracePeriod(0)); err != nil {
		b.t.Fatal(err)
	}
	Settle()
}
