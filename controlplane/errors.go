// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import "errors"

// Errors a caller can act on. Start returns them wrapped, with the path, port
// or process in question and what to do; test for them with errors.Is.
// A missing permission is reported as fs.ErrPermission.
var (
	// ErrPortInUse: another process listens on a port of Options.
	ErrPortInUse = errors.New("port in use")

	// ErrDataDirLocked: a live process has the data directory open. The error
	// names its process id.
	ErrDataDirLocked = errors.New("data directory in use")

	// ErrDataDirVersion: the data directory was written in another format, or by a
	// version of Kubernetes that is neither this one nor the minor version before.
	ErrDataDirVersion = errors.New("data directory of another version")

	// ErrNotDataDir: the directory holds something else than a control plane.
	// Nothing in it was touched.
	ErrNotDataDir = errors.New("not a control plane's data directory")

	// ErrUntrustedDataDir: another user owns the data directory or one above
	// it, or could have put files into it: keys in it may be known to him, and
	// links may lead to this user's files. Nothing in it was touched.
	ErrUntrustedDataDir = errors.New("data directory that another user could change")

	// ErrDiskFull: the file system of the data directory has too little room.
	ErrDiskFull = errors.New("disk full")

	// ErrCertificateTime: this machine's clock is outside the time in which
	// the certificate authority of the data directory is valid.
	ErrCertificateTime = errors.New("clock outside the validity of the certificate authority")

	// ErrForeignKubeconfig: the file that the kubeconfig should go to has
	// clusters in it that are not this package's. It was not touched.
	ErrForeignKubeconfig = errors.New("kubeconfig of other clusters")

	// ErrFeatureGates: the gates are unknown, or differ from those that this
	// process already runs with.
	ErrFeatureGates = errors.New("feature gates refused")

	// ErrStopped: the control plane, or the API server of the call, was stopped.
	ErrStopped = errors.New("stopped")
)
