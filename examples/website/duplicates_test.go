// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// duplicates warns of Websites that have one host.
type duplicates struct {
	sites    cache.SharedInformer[*Website]
	byHost   cache.Index[*Website]
	recorder *events.Recorder
}

func newDuplicates(h controller.Host) *controller.Controller {
	sites := cache.Informer[*Website](h)
	r := &duplicates{sites: sites, byHost: cache.NewIndex(sites, hostOf), recorder: h.Recorder("website-duplicates")}
	return controller.New("website-duplicates", r.reconcile,
		controller.For(sites), controller.Watches(sites, r.sameHost))
}

func hostOf(site cache.Item[*Website]) ([]string, error) {
	o, err := site.Object()
	if err != nil {
		return nil, err
	}
	return []string{o.Spec.Host}, nil
}

// sameHost adds the keys of all Websites that have the host of one that has changed.
func (r *duplicates) sameHost(site cache.Item[*Website], add func(object.Key)) {
	hosts, err := hostOf(site)
	if err != nil {
		return // the Website cannot be read, and has no host
	}
	for key := range r.byHost.Find(hosts[0]) {
		add(key)
	}
}

func (r *duplicates) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	site, err := r.sites.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	for key := range r.byHost.Find(site.Spec.Host) {
		if key == req.Key {
			continue
		}
		controller.Logger(ctx).Warn("two Websites have one host", "host", site.Spec.Host, "other", key)
		r.recorder.Warning(site, "SameHost", "CheckHost", "Website %s has the host %s, too", key, site.Spec.Host)
		return controller.Result{After: time.Hour}, nil // Events expire: repeat it
	}
	return controller.Result{}, nil
}

// logged is a log that two goroutines may use.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// about is what the logger of a run says of its Website.
var about = regexp.MustCompile(`controller=website-duplicates object=(\S+) cause="[^"]+"`)

// warned returns the Websites that the log names since the last call, each once.
func (l *logged) warned() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	named := map[string]bool{}
	for _, match := range about.FindAllStringSubmatch(l.text.String(), -1) {
		named[match[1]] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(named)), " ")
}

func TestWebsitesWithOneHostAreNamedUntilOneIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New()
		recorded := api.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true})
		sites := api.Serve(object.Resource{Group: "example.com", Version: "v1", Plural: "websites", Kind: "Website", Namespaced: true}, fakeapi.WithStatus())
		var log logged
		mgr, err := manager.New(api.Config(), manager.ClientOptions(client.WithScheme(kinds())), manager.Log(slog.New(slog.NewTextHandler(&log, nil))))
		if err != nil {
			t.Fatal(err)
		}
		if err := mgr.Add(newDuplicates(mgr)); err != nil {
			t.Fatal(err)
		}
		setpointtest.Run(t, mgr)
		for name, host := range map[string]string{"blog": "a.example", "copy": "a.example", "shop": "b.example"} {
			err := sites.Add(&Website{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}, Spec: WebsiteSpec{Host: host}})
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(30 * time.Minute)
		if named := log.warned(); named != "team-a/blog team-a/copy" {
			t.Errorf("the log names %q, want blog and copy", named)
		}
		if keys := recorded.Keys(); len(keys) != 2 {
			t.Errorf("the Events are %v, want one each of blog and copy", keys)
		}
		time.Sleep(time.Hour)
		if named := log.warned(); named != "team-a/blog team-a/copy" {
			t.Errorf("after an hour, the log names %q, want blog and copy again", named)
		}
		sites.Remove(object.Key{Namespace: "team-a", Name: "copy"})
		time.Sleep(10 * time.Hour)
		if named := log.warned(); named != "" {
			t.Errorf("when one of them is gone, the log names %q", named)
		}
	})
}
