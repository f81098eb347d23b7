// Machine integers, and the Option type of ghost code.
module Machine {
  newtype {:nativeType "byte"} byte = x:int | 0 <= x < 256
  newtype {:nativeType "uint"} uint32 = x:int | 0 <= x < 0x1_0000_0000
  newtype {:nativeType "ulong"} uint64 = x:int | 0 <= x < 0x1_0000_0000_0000_0000
  datatype Option<T> = None | Some(x: T)
}
