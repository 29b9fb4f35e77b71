// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager is a process of controllers: one client, one set of informers,
// one place where they are started, watched over and stopped.
//
//	mgr, err := manager.New(config)
//	pods := cache.Informer[*corev1.Pod](mgr)
//	mgr.Add(controller.New("pod-logger", reconcile, controller.For(pods)))
//	return mgr.Run(ctx)
//
// [Manager.Run] waits for the server, starts the informers, and starts each
// controller as soon as the informers that it reads have a first state. A
// controller whose informers cannot be read, because a right is missing or a kind
// is not served, holds up nobody else: the log says once what is missing, and the
// controller starts when it is there.
//
// When Run's context ends, controllers finish what they have begun, then the
// events they recorded are written, then the informers stop. Run returns when
// nothing of the manager runs any more.
package manager
