// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Fields of a Pod. Source: k8s.io/api/core/v1/generated.proto.
var (
	claimPath = wire.Path{Names: "spec.volumes.persistentVolumeClaim", Numbers: [4]int32{2, 1, 2, 10}}
	diskPath  = wire.Path{Names: "spec.volumes.awsElasticBlockStore", Numbers: [4]int32{2, 1, 2, 4}}
	aliasPath = wire.Path{Names: "spec.hostAliases", Numbers: [4]int32{2, 23}}
)

// queriesOfPods are more queries than an entry keeps the answers to.
func queriesOfPods() (all [][]wire.Path) {
	all = [][]wire.Path{{claimPath}, {claimPath, diskPath}, {aliasPath}}
	for i := range int32(queriesMost) {
		all = append(all, []wire.Path{{Names: "spec.none", Numbers: [4]int32{2, 1000 + i}}, claimPath})
	}
	return all
}

// hasAny reports whether a Pod has anything at one of the paths.
func hasAny(p *corev1.Pod, paths []wire.Path) bool {
	claim := slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil })
	disk := slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.AWSElasticBlockStore != nil })
	return slices.Contains(paths, claimPath) && claim || slices.Contains(paths, diskPath) && disk || slices.Contains(paths, aliasPath) && len(p.Spec.HostAliases) > 0
}

func podWith(name, version string, sources ...corev1.VolumeSource) *corev1.Pod {
	p := pod(name, version)
	for i, s := range sources {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v-", i), VolumeSource: s})
	}
	return p
}

// The answers are right for a state as it came, packed, or changed, from several goroutines. A query that was answered once is answered again
// without a look at the object.
func TestAnObjectIsReadOnceForAllQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}
		disk := corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "d"}}
		all := []*corev1.Pod{podWith("none", "2"), podWith("claim", "3", disk, claim), podWith("disk", "4", disk)}
		all[0].Spec.HostAliases = []corev1.HostAlias{{IP: "10.0.0.1"}}
		first, second := watching(added(all[0]), added(all[1]), added(all[2]), allSent("5")), watching(allSent("9"))
		_, pods := newTestInformer(t, first, second)
		defer start(t, pods)()
		synctest.Wait()
		check := func(when string) {
			t.Helper()
			var readers sync.WaitGroup
			for range 3 {
				readers.Go(func() {
					for _, p := range all {
						for _, query := range queriesOfPods() {
							if got, want := pods.Snapshot().Get(object.KeyOf(p)).MayHave(query...), hasAny(p, query); got != want {
								t.Errorf("%s: Pod %s may have %v: %t, want %t", when, p.Name, query, got, want)
							}
						}
					}
				})
			}
			readers.Wait()
		}
		check("listed")
		changed := podWith("none", "7", claim)
		first.events <- modified(changed)
		synctest.Wait()
		all[0] = changed
		check("changed")
		time.Sleep(3 * restPeriod)
		synctest.Wait()
		check("at rest")
		e := pods.Snapshot().Get(object.KeyOf(changed)).entry
		before := e.notes.Load()
		e.mark(4711)
		if e.marked() != 4711 || e.notes.Load()&^ofRelist != before&^ofRelist {
			t.Error("the mark of a relist changes the answers")
		}
		e.text = e.text[:len(e.text)-len(e.body())] + "\xff" // what cannot be read may have anything
		queries := queriesOfPods()
		for i, query := range queries {
			if got, want := e.mayHave(query), hasAny(changed, query); got != want && i < queriesMost {
				t.Errorf("query %d is not answered from what is known", i)
			}
		}
		if !e.mayHave(queries[len(queries)-1]) {
			t.Error("an object that cannot be read has certainly nothing")
		}
	})
}

// The notes of an entry take no room of their own: a million Pods would have eight megabytes of them.
func TestAnEntryHasSixtyFourBytes(t *testing.T) {
	if size := unsafe.Sizeof(entry{}); size != 64 {
		t.Errorf("an entry has %d bytes", size)
	}
}

// A query that brings more paths than one walk takes is answered each time, and so are all new ones after it.
func TestAQueryWithoutAPlaceIsAnsweredAllTheSame(t *testing.T) {
	many := make([]wire.Path, wire.WhichMost)
	for i := range many {
		many[i] = wire.Path{Names: "spec.none", Numbers: [4]int32{2, 1000 + int32(i)}}
	}
	many = append(many, claimPath)
	a := newArchive(&content{typ: reflect.TypeFor[*corev1.Pod](), new: func() object.Object { return new(corev1.Pod) }})
	e := mustEntry(t, a, podWith("a", "1", corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}))
	for range 2 {
		if !e.mayHave(many) || e.mayHave(many[:1]) || !e.mayHave([]wire.Path{claimPath}) {
			t.Error("a query has the wrong answer")
		}
	}
	if s := a.content.queries.known.Load(); !s.full || len(s.each) != 0 {
		t.Errorf("%d queries are kept, and the set is full: %t", len(s.each), s.full)
	}
}
