// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package quiet

import "os"

// IsPipe reports whether a file is a pipe or a socket, whose reader may go away.
func IsPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}
