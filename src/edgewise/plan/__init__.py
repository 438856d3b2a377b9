"""The waist of the compiler: `lang` lowers into it, engines read only it. Pure declarations."""
