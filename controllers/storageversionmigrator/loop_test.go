// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storageversionmigrator

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	migrationv1 "k8s.io/api/storagemigration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var websites = object.Resource{Group: "example.com", Version: "v2", Plural: "websites", Kind: "Website", Namespaced: true}

// cluster is a server with migrations, websites, and the definition of websites, inside of a
// bubble of synctest.
type cluster struct {
	t                                 *testing.T
	api                               *fakeapi.Server
	migrations, websites, definitions *fakeapi.Resource
	client                            *client.Client

	mu      sync.Mutex
	patched []string // websites, in the order of their patches
}

// newCluster makes a cluster with so many websites.
func newCluster(t *testing.T, sites int) *cluster {
	t.Helper()
	api := fakeapi.New()
	c := &cluster{
		t: t, api: api,
		migrations:  api.Serve(kind, fakeapi.WithStatus()),
		websites:    api.Serve(websites),
		definitions: api.Serve(definitions, fakeapi.WithStatus()),
	}
	c.websites.Before(func(q *fakeapi.Request) *metav1.Status {
		if q.Verb == "patch" {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.patched = append(c.patched, q.Key.Name)
		}
		return nil
	})
	var err error
	if c.client, err = client.New(api.Config()); err != nil {
		t.Fatal(err)
	}
	d := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "websites.example.com", "generation": int64(2)},
		"spec": map[string]any{"versions": []any{
			map[string]any{"name": "v1", "storage": false}, map[string]any{"name": "v2", "storage": true},
		}},
		"status": map[string]any{"storedVersions": []any{"v1", "v2"}},
	}}
	if err := c.definitions.Put(d); err != nil {
		t.Fatal(err)
	}
	for i := range sites {
		c.add(fmt.Sprintf("site-%04d", i))
	}
	return c
}

// add makes a website.
func (c *cluster) add(name string) {
	c.t.Helper()
	site := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": websites.APIVersion(), "kind": websites.Kind, "metadata": map[string]any{"namespace": "team-a", "name": name},
	}}
	if err := c.websites.Add(site); err != nil {
		c.t.Fatal(err)
	}
}

// start runs the controller.
func (c *cluster) start() *managertest.Process {
	c.t.Helper()
	p := managertest.Run(c.t, c.api.Config(), managertest.Making(New, Defaults()))
	settle()
	return p
}

// settle lets everything happen that does not wait for long.
func settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// create creates a migration, as a user would.
func (c *cluster) create(name string, of object.Resource) {
	c.t.Helper()
	m := &migrationv1.StorageVersionMigration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.Resource = metav1.GroupResource{Group: of.Group, Resource: of.Plural}
	if _, err := client.For[*migrationv1.StorageVersionMigration](c.client).Create(c.t.Context(), m); err != nil {
		c.t.Fatal(err)
	}
}

// status returns the conditions of a migration, as TYPE=STATUS:REASON, and those messages that
// are asked for.
func (c *cluster) status(name string) (conditions string, messages map[string]string) {
	c.t.Helper()
	m, err := client.For[*migrationv1.StorageVersionMigration](c.client).Get(c.t.Context(), object.Key{Name: name})
	if err != nil {
		c.t.Fatal(err)
	}
	messages = map[string]string{}
	var all []string
	for _, each := range m.Status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s", each.Type, each.Status))
		messages[each.Type] = each.Message
	}
	slices.Sort(all)
	return strings.Join(all, " "), messages
}

func (c *cluster) isStatus(name, want string) map[string]string {
	c.t.Helper()
	got, messages := c.status(name)
	if got != want {
		c.t.Errorf("the conditions of %s are %q %v, want %q", name, got, messages, want)
	}
	return messages
}

// definition returns the condition StorageMigrating as STATUS:REASON, and the stored versions.
func (c *cluster) definition() string {
	c.t.Helper()
	u := c.definitions.Get(object.Key{Name: "websites.example.com"})
	var d definition
	if err := convert(u, &d); err != nil {
		c.t.Fatal(err)
	}
	stored, _, err := unstructured.NestedStringSlice(u.Object, "status", "storedVersions")
	if err != nil {
		c.t.Fatal(err)
	}
	text := "none"
	if m := d.migrating(); m != nil {
		text = string(m.Status) + ":" + m.Reason
	}
	return text + " " + strings.Join(stored, ",")
}

func (c *cluster) isDefinition(want string) {
	c.t.Helper()
	if got := c.definition(); got != want {
		c.t.Errorf("the definition says %q, want %q", got, want)
	}
}

// sites returns how many patches each website got: those that got none are not there.
func (c *cluster) sites() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := map[string]int{}
	for _, name := range c.patched {
		n[name]++
	}
	return n
}

const (
	succeeded = "Running=False Succeeded=True"
	hasFailed = "Failed=True Running=False"
	goesOn    = "Running=True"
)

func TestAMigrationPatchesEachObjectOnceAndThenOneVersionIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sites = 2*slice + 7 // three runs
		c := newCluster(t, sites)
		c.start()
		c.create("m", websites)
		settle()
		c.isStatus("m", succeeded)
		c.isDefinition("False:MigrationSucceeded v2")
		n := c.sites()
		if len(n) != sites {
			t.Errorf("%d objects were patched, want %d", len(n), sites)
		}
		for name, times := range n {
			if times != 1 {
				t.Errorf("%s was patched %d times", name, times)
			}
		}
	})
}

func TestObjectsThatAreWrittenOrDeletedMeanwhileNeedNoPatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.websites.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "patch" {
				return nil
			}
			switch q.Key.Name {
			case "site-0000":
				return new(apierrors.NewConflict(schemaOf(websites), q.Key.Name, nil).Status())
			case "site-0001":
				return new(apierrors.NewNotFound(schemaOf(websites), q.Key.Name).Status())
			}
			return nil
		})
		c.start()
		c.create("m", websites)
		settle()
		c.isStatus("m", succeeded)
		c.isDefinition("False:MigrationSucceeded v2")
	})
}

func TestObjectsThatAreNewerThanTheCheckpointGetNoPatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		var listed atomic.Bool
		c.websites.Before(func(q *fakeapi.Request) *metav1.Status {
			switch {
			case q.Verb == "list" && q.HTTP.URL.Query().Get("limit") == fmt.Sprint(pageSize) && !listed.Swap(true):
				c.add("newer")
			case q.Verb == "patch":
				c.mu.Lock()
				defer c.mu.Unlock()
				c.patched = append(c.patched, q.Key.Name)
			}
			return nil
		})
		c.start()
		c.create("m", websites)
		settle()
		c.isStatus("m", succeeded)
		if n := c.sites(); len(n) != 2 || n["newer"] != 0 {
			t.Errorf("the patches are %v", n)
		}
	})
}

func TestTheNextMigrationOfAResourceWaitsAndSaysForWhom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		var free atomic.Bool
		c.websites.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "patch" && !free.Load() {
				return new(apierrors.NewServiceUnavailable("busy").Status())
			}
			return nil
		})
		p := c.start()
		c.create("first", websites)
		time.Sleep(time.Second)
		c.create("second", websites)
		settle()
		c.isStatus("first", goesOn)
		c.isStatus("second", "")
		c.isDefinition("True:MigrationRunning v1,v2")
		const want = "StorageVersionMigration.storagemigration.k8s.io second: the migration first of the same resource runs first"
		if reasons := p.Reasons("example.com/websites"); !slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(r, want) }) {
			t.Errorf("the reasons are %q, want %q", reasons, want)
		}
		free.Store(true)
		time.Sleep(time.Hour)
		c.isStatus("first", succeeded)
		c.isStatus("second", succeeded)
		c.isDefinition("False:MigrationSucceeded v2")
	})
}

func TestAnErrorThatPassesIsInTheMessageAndIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		var works atomic.Bool
		c.websites.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "patch" && !works.Load() {
				return new(apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q", "guard.example.com")).Status())
			}
			return nil
		})
		c.start()
		c.create("m", websites)
		settle()
		messages := c.isStatus("m", goesOn)
		if m := messages["Running"]; !strings.Contains(m, "3/3 objects not yet migrated; transient error: ") || !strings.Contains(m, "guard.example.com") {
			t.Errorf("the message is %q", m)
		}
		works.Store(true)
		time.Sleep(time.Minute)
		settle()
		c.isStatus("m", succeeded)
	})
}

// Each failure has another text. A status that was written after each of them would start the next
// run at once, and the pause after so many failures would be long.
func TestErrorsThatPassAreWrittenNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		var failures atomic.Int64
		c.websites.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "patch" {
				return new(apierrors.NewInternalError(fmt.Errorf("failure %d", failures.Add(1))).Status())
			}
			return nil
		})
		c.start()
		c.create("m", websites)
		settle()
		written := 0
		for _, q := range c.migrations.Requests() {
			if q.Verb == "patch" {
				written++
			}
		}
		// That it runs, the version up to which it goes, and the first failure.
		if n := failures.Load(); written != 3 || n < 5 || n > 10 {
			t.Errorf("after %d failures the status was written %d times", n, written)
		}
		if m := c.isStatus("m", goesOn)["Running"]; !strings.HasSuffix(m, "failure 1") {
			t.Errorf("the message is %q", m)
		}
	})
}

// The server refuses the first status that has an error. The next failure is then written at once,
// not 10 s later.
func TestAnErrorThatCouldNotBeWrittenIsWrittenAfterTheNextFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		c.websites.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "patch" {
				return new(apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q", "guard.example.com")).Status())
			}
			return nil
		})
		var writes atomic.Int64
		c.migrations.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "patch" && writes.Add(1) == 3 { // after that it runs, and up to which version
				return new(apierrors.NewInternalError(errors.New("no space")).Status())
			}
			return nil
		})
		c.start()
		c.create("m", websites)
		settle()
		if m := c.isStatus("m", goesOn)["Running"]; !strings.Contains(m, "guard.example.com") {
			t.Errorf("after %d writes the message is %q", writes.Load(), m)
		}
	})
}

func TestAnObjectThatTheServerRefusesFailsTheMigrationByItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.websites.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "patch" && q.Key.Name == "site-0001" {
				return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "spec.host is missing"}
			}
			return nil
		})
		c.start()
		c.create("m", websites)
		settle()
		messages := c.isStatus("m", hasFailed)
		if m := messages["Failed"]; !strings.Contains(m, "/3 not yet migrated. migration encountered unhandled error: patching Website team-a/site-0001: ") {
			t.Errorf("the message is %q", m)
		}
		// Objects may still be stored as v1.
		c.isDefinition("False:MigrationFailed v1,v2")
	})
}

// No server sends the version 0, but another client may write it.
func TestACheckpointThatIsNoVersionOfAListFailsTheMigrationAndIsNamed(t *testing.T) {
	for _, version := range []string{"0", "v5"} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 1)
			c.create("m", websites)
			if err := fakeapi.Change(c.migrations, object.Key{Name: "m"}, func(m *migrationv1.StorageVersionMigration) {
				running(m, progress{}, nil)
				m.Status.ResourceVersion = version
			}); err != nil {
				t.Fatal(err)
			}
			c.start()
			if m := c.isStatus("m", hasFailed)["Failed"]; !strings.HasPrefix(m, "migration encountered unhandled error: ") || !strings.Contains(m, strconv.Quote(version)) {
				t.Errorf("the message is %q", m)
			}
			if n := len(c.sites()); n > 0 {
				t.Errorf("%d websites were patched", n)
			}
		})
	}
}

func TestAResourceThatIsNotServedIsLookedForDuringAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		c.start()
		late := object.Resource{Group: "late.example.com", Version: "v1", Plural: "clocks", Kind: "Clock"}
		c.create("never", object.Resource{Group: "example.com", Plural: "nothings"})
		c.create("late", late)
		settle()
		c.isStatus("never", goesOn)
		c.isStatus("late", goesOn)
		time.Sleep(30 * time.Second)
		c.api.Serve(late)
		time.Sleep(10 * time.Second)
		c.isStatus("late", succeeded)
		c.isStatus("never", goesOn)
		time.Sleep(30 * time.Second)
		messages := c.isStatus("never", hasFailed)
		if m := messages["Failed"]; m != "resource nothings.example.com does not exist in discovery" {
			t.Errorf("the message is %q", m)
		}
	})
}

func TestADefinitionThatChangesMeanwhileKeepsItsStoredVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		c.websites.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "patch" {
				d := c.definitions.Get(object.Key{Name: "websites.example.com"})
				d.SetGeneration(d.GetGeneration() + 1)
				if err := c.definitions.Put(d); err != nil {
					t.Error(err)
				}
			}
			return nil
		})
		c.start()
		c.create("m", websites)
		settle()
		c.isStatus("m", succeeded)
		c.isDefinition("False:MigrationSucceeded v1,v2")
	})
}

func TestADeletedMigrationLeavesNoConditionInTheDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		c.websites.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "patch" {
				return new(apierrors.NewServiceUnavailable("away").Status())
			}
			return nil
		})
		c.start()
		c.create("m", websites)
		settle()
		c.isDefinition("True:MigrationRunning v1,v2")
		if err := client.For[*migrationv1.StorageVersionMigration](c.client).Delete(t.Context(), object.Key{Name: "m"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		settle()
		c.isDefinition("False:MigrationFailed v1,v2")
	})
}

// Whatever write is the last one of a process, the next process ends the migration.
func TestAControllerThatIsKilledAtAnyWriteGoesOn(t *testing.T) {
	for writes := 1; ; writes++ {
		ended := false
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 2)
			c.create("m", websites)
			left, dead := writes, false
			c.api.Before(func(q *fakeapi.Request) *metav1.Status {
				c.mu.Lock()
				defer c.mu.Unlock()
				if q.Verb != "patch" {
					return nil
				}
				if left--; left < 0 && !dead {
					return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Message: "killed"}
				}
				return nil
			})
			p := c.start()
			got, _ := c.status("m")
			ended = got == succeeded
			p.Kill()
			c.mu.Lock()
			dead = true
			c.mu.Unlock()
			c.start()
			c.isStatus("m", succeeded)
			c.isDefinition("False:MigrationSucceeded v2")
		})
		if ended {
			if writes < 6 {
				t.Errorf("a migration took %d writes; this test expects more", writes)
			}
			return
		}
	}
}

func convert(u *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}

func schemaOf(r object.Resource) schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}
