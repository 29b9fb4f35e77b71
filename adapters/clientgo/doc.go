// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clientgo has the informers of client-go on the cache of Setpoint. A program changes the
// line that makes its factory:
//
//	factory := clientgo.NewSharedInformerFactory(clientset, 30*time.Second)
//
// Its informers, listers, handlers and indexers stay as they are. The factory implements
// informers.SharedInformerFactory, and what it returns are the generated informers and listers of
// client-go. The store below them keeps each object as the server sent it, compressed: see package
// cache of Setpoint.
//
//	clientset ─▶ NewSharedInformerFactory ─▶ Core().V1().Pods() ─▶ Informer, Lister   (generated)
//	                                                                 │
//	config ────▶ NewDynamicSharedInformerFactory                     ▼
//	config ────▶ NewMetadataSharedInformerFactory ──────────────▶ [Informer] ─▶ cache of Setpoint
//	clientset ─▶ NewInformer, for generated factories of custom kinds
//	ListerWatcher ─▶ NewSharedIndexInformer
//
// # Custom kinds
//
// A factory that was generated for custom kinds takes an informer of this package by its method
// InformerFor, before the first use of the kind:
//
//	factory.InformerFor(&v1alpha1.Foo{}, func(c versioned.Interface, resync time.Duration) cache.SharedIndexInformer {
//		return clientgo.NewInformer(c, v1alpha1.SchemeGroupVersion.WithResource("foos"), &v1alpha1.Foo{}, clientgo.Options{ResyncPeriod: resync})
//	})
//
// # What differs from client-go
//
// An object is decoded when a handler or a reader needs it, and is freed when nothing refers to it.
// All readers of one state share the decoded object, and must not change it. A program that lists
// all objects again and again pays for decoding them each time.
//
// Objects have no managedFields unless the program asks for them. A handler for which more than
// 10,000 changes wait gets further ones merged, where client-go's memory grows. An object that is
// the same after a second list makes no update. A transform keeps the type and the name of an
// object. A running informer owns its store: writes to it are errors. docs/client-go.md has the
// details.
package clientgo
