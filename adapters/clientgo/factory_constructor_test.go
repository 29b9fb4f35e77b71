// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// podInformerOf returns an informer of Pods of this package.
func podInformerOf(c kubernetes.Interface) *clientgo.Informer {
	return clientgo.NewInformer(c.(*kubernetes.Clientset), podResource, &corev1.Pod{}, clientgo.Options{})
}

// silent is a source that does not answer, and does not end with its context.
func silent(until <-chan struct{}) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			<-until
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			<-until
			return watch.NewFake(), nil
		},
	}, watchLists{})
}

// watchLists is a client whose watches begin with what there is.
type watchLists struct{}

func (watchLists) IsWatchListSemanticsUnSupported() bool { return false }

func TestAnInformerThatExistsIsTakenAsItIs(t *testing.T) {
	for name, existing := range map[string]func(kubernetes.Interface) func() cache.SharedIndexInformer{
		"of this package": func(c kubernetes.Interface) func() cache.SharedIndexInformer {
			own := podInformerOf(c)
			return func() cache.SharedIndexInformer { return own }
		},
		"of client-go": func(c kubernetes.Interface) func() cache.SharedIndexInformer {
			own := coreinformers.NewPodInformer(c, "", 0, cache.Indexers{})
			return func() cache.SharedIndexInformer { return own }
		},
		"of client-go, in a new wrapper each time": func(c kubernetes.Interface) func() cache.SharedIndexInformer {
			own := coreinformers.NewPodInformer(c, "", 0, cache.Indexers{})
			return func() cache.SharedIndexInformer { return &struct{ cache.SharedIndexInformer }{own} }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.put(t, pod("a"))
				build := existing(w.clientset(t))
				factory := clientgo.NewSharedInformerFactory(w.clientset(t), 0)
				informer := factory.InformerFor(&corev1.Pod{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return build() })
				if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
					t.Error("a handler:", err)
				}
				stop := start(factory)
				w.put(t, pod("b"))
				time.Sleep(time.Second)
				want(t, "the store has", names(informer.GetStore().List()), "a b")
				stop()
			})
		})
	}
}

func TestAConstructorWhoseSourceDoesNotAnswerHoldsNothingUp(t *testing.T) {
	for name, wrapped := range map[string]func(*clientgo.Informer) cache.SharedIndexInformer{
		"as it is": func(i *clientgo.Informer) cache.SharedIndexInformer { return i },
		"with its types": func(i *clientgo.Informer) cache.SharedIndexInformer {
			return cache.NewTypedSharedIndexInformer[*corev1.Pod](i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.Before(func(*fakeapi.Request) *metav1.Status { return fakeapi.Forbidden("list pods") })
				factory, began := clientgo.NewSharedInformerFactory(w.clientset(t), 0), time.Now()
				factory.InformerFor(&corev1.Pod{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
					return wrapped(podInformerOf(w.clientset(t)))
				})
				if took := time.Since(began); took > time.Second || len(w.Requests()) > 0 {
					t.Errorf("InformerFor took %s and sent %d requests before the start", took, len(w.Requests()))
				}
			})
		})
	}
}

func TestAConstructorWhoseSourceNeverEndsHoldsUpNoLongerThanItsTrial(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		until := make(chan struct{})
		timer := time.AfterFunc(time.Minute, func() { close(until) })
		factory, began := clientgo.NewSharedInformerFactory(w.clientset(t), 0), time.Now()
		factory.InformerFor(&corev1.Pod{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
			return cache.NewSharedIndexInformer(silent(until), &corev1.Pod{}, 0, cache.Indexers{})
		})
		if took := time.Since(began); took > time.Second {
			t.Errorf("InformerFor took %s", took)
		}
		if timer.Stop() {
			close(until)
		}
		time.Sleep(time.Minute)
	})
}

// An informer of this package is made for the client of the factory, by one call.
func TestAConstructorOfThisPackageIsCalledOnceWithTheClientOfTheFactory(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var got []kubernetes.Interface
		c := w.clientset(t)
		clientgo.NewSharedInformerFactory(c, 0).InformerFor(&corev1.Pod{}, func(c kubernetes.Interface, _ time.Duration) cache.SharedIndexInformer {
			got = append(got, c)
			return podInformerOf(c)
		})
		if !reflect.DeepEqual(got, []kubernetes.Interface{c}) {
			t.Errorf("the constructor got %d clients", len(got))
		}
	})
}

// client-go logs an error if a generated informer is made twice for a factory with a name.
func TestAGeneratedConstructorIsCalledOnce(t *testing.T) {
	var log bytes.Buffer
	klog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
	defer klog.ClearLogger()
	inWorld(t, func(t *testing.T, w *world) {
		name, err := cache.NewInformerName("named")
		if err != nil {
			t.Fatal(err)
		}
		factory := clientgo.NewSharedInformerFactoryWithOptions(w.clientset(t), 0, clientgo.WithInformerName(name))
		factory.Core().V1().Pods().Informer()
		ctx, cancel := context.WithCancel(t.Context())
		factory.StartWithContext(ctx)
		cancel()
		factory.Shutdown()
	})
	if strings.Contains(log.String(), "Duplicate") {
		t.Error("the log has", log.String())
	}
}
